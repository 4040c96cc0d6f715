//! Target for the user data of machines, as simulated guests read them.

use simulator::guest;

/// Reads user data as an image of Ubuntu and as one of Flatcar does: files and commands, or an error with a message.
pub fn user_data(data: &[u8]) {
    for image in ["ubuntu-2404-kube-v1.34.2", "flatcar-stable"] {
        match guest::read_user_data(data, image) {
            Ok(paths) => assert!(paths.iter().all(|path| !path.is_empty())),
            Err(message) => assert!(!message.is_empty()),
        }
    }
}
