//! Simulated guests, booted from the user data of simulated servers.
