use clap::Parser;
use csi::{Driver, Options};
use csi_spec::{Controller as _, ControllerGetVolumeRequest};
use grpc::{Code, Context};
use operator::metrics::Metrics;

use super::*;
use crate::commands::csi::tests::world::{World, until};

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: CinderCsiPlugin,
}

/// Answer to a call for a volume that does not exist, in a current list.
async fn answer(driver: &Driver) -> Code {
    let request = ControllerGetVolumeRequest {
        volume_id: "absent".to_owned(),
    };
    let answer = driver.controller_get_volume(Context::default(), request);
    answer.await.unwrap_err().code
}

#[tokio::test]
async fn credentials_that_are_revoked_are_replaced_without_a_restart() {
    let world = World::open().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cloud.conf");
    std::fs::write(&file, world.conf("secret")).unwrap();
    let flag = format!("--cloud-config={}", file.display());
    let words = ["csi", "--endpoint=tcp://127.0.0.1:1", flag.as_str()];
    let args = Command::try_parse_from(words).unwrap().args;
    let environment = Environment::default();
    let loaded = clouds::load(&(&args).into(), &environment).unwrap();
    let pool = clouds::pool(&args, &loaded, &Metrics::default());
    let driver = Driver::new(pool, loaded.clouds, Options::default());
    assert_eq!(answer(&driver).await, Code::NotFound);

    let story = async {
        // A code that is not final: the sidecars ask again.
        world.password("other").await;
        until(async || answer(&driver).await == Code::Unavailable).await;
        // Nothing is used of a file that is half written.
        std::fs::write(&file, "[Global]\nauth-url = http").unwrap();
        assert_eq!(answer(&driver).await, Code::Unavailable);
        std::fs::write(&file, world.conf("other")).unwrap();
        until(async || answer(&driver).await == Code::NotFound).await;
        // The same credentials, which are valid again.
        world.password("third").await;
        until(async || answer(&driver).await == Code::Unavailable).await;
        world.password("other").await;
        until(async || answer(&driver).await == Code::NotFound).await;
    };
    let watching = watch(&args, &environment, Some(&driver), Duration::from_millis(5));
    tokio::select! {
        never = watching => match never {},
        () = story => {}
    }
}
