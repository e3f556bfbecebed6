select count(*) from trunkline.reclaim_history as h
