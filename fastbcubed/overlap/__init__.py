"""Cells where items are in several clusters: items with the same clusters on both sides form one."""
