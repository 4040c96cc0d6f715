//! A log of every level that is kept.

use std::io;
use std::sync::{Arc, Mutex};

use tracing::Subscriber;
use tracing_subscriber::filter::LevelFilter;

/// Logged lines.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Keeps all there is to log.
    pub(crate) fn subscriber(&self) -> impl Subscriber + Send + Sync + use<> {
        let log = self.clone();
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_writer(move || log.clone())
            .finish()
    }

    /// All of it.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
