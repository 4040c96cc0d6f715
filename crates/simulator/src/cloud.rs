//! The simulated OpenStack cloud.
