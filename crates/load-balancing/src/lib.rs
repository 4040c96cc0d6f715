//! One planner for Octavia. Pure functions.
