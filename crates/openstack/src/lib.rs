//! An OpenStack cloud as typed calls and as an observed inventory.
