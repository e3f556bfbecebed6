"""What profile studio needs of machines: its planning table with measured figures."""
