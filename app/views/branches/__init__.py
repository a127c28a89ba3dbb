"""The branches view: runs that branched from each other, shown as a tree."""
