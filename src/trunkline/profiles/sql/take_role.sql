set local role trunkline_owner
