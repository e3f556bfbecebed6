"""Mutation testing: applies small breaks one at a time and reports which ones the tests notice."""
