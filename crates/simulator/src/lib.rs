//! A simulated OpenStack cloud, and simulated guests that boot kubeadm nodes from their user data.
