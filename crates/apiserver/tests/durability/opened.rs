//! A server on a file.

use std::path::Path;

use apiserver::{ApiServer, OpenError, Options, Store, Synchronous};

/// Opens a server that the disk need not keep up with.
pub(crate) async fn open(path: &Path) -> Result<ApiServer, OpenError> {
    let store = Store::Sqlite {
        path: path.to_owned(),
        synchronous: Synchronous::Normal,
    };
    ApiServer::open(Options {
        store,
        ..Options::default()
    })
    .await
}
