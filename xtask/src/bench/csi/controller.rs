//! Controller half: requests to the cloud, and memory.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::bail;
use csi_spec::ListVolumesRequest;
use serde::Serialize;
use serde_json::{Value, json};

use super::load::{attach, create, delete, detach, each};
use super::percentile;
use crate::csi::driver::{Driver, Half, PATIENCE, Program};
use crate::csi::world::World;

/// Time after which no list is recent enough for a creation.
const OLD: Duration = Duration::from_secs(12);
/// Number of volumes during the idle measurement.
const MANY: usize = 1000;
/// Number of ListVolumes calls in a row.
const LISTS: usize = 10;
/// Time until all volumes are available. The Go driver answers earlier, and repeats a failed attachment a second later.
const SETTLED: Duration = Duration::from_secs(5);
/// Number of volumes attached one after the other without a driver.
const ALONE: usize = 10;

/// Figures of a driver.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figures {
    /// Requests in one volume's life, right after the life of another, by call.
    life: Life,
    /// The same some time after any list.
    later: Life,
    /// 100 volumes, 20 at a time, on 5 servers.
    pub(super) hundred: Crowd,
    /// 500 volumes, 100 at a time, on 20 servers.
    pub(super) five_hundred: Crowd,
    /// Median milliseconds of an attachment in Nova and Cinder, without a driver.
    pub(super) attachment_alone: f64,
    /// Reads for ten ListVolumes calls in a row.
    pub(super) list_reads: u64,
    /// Requests without work.
    pub(super) idle: Requests,
    /// The same with a ListVolumes call each minute, as of the attacher.
    pub(super) idle_listed: Requests,
    /// Megabytes with 1000 volumes: all memory, and memory without a file behind it.
    pub(super) rss: (f64, f64),
}

/// Requests to the cloud, without logins.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Requests {
    pub(super) writes: u64,
    pub(super) reads: u64,
}

/// [`Requests`] of the calls for one volume.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Life {
    create: Requests,
    attach: Requests,
    detach: Requests,
    delete: Requests,
}

/// Figures of many volumes at a time.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Crowd {
    pub(super) requests: Requests,
    pub(super) seconds: f64,
    /// Milliseconds of attachments.
    pub(super) attach_median: f64,
    pub(super) attach_percentile_99: f64,
}

impl Figures {
    pub(super) fn life(&self) -> u64 {
        self.life.all()
    }

    pub(super) fn later(&self) -> u64 {
        self.later.all()
    }

    /// Requests of create, attach, detach and delete.
    pub(super) fn calls(&self) -> [u64; 4] {
        let Life {
            create,
            attach,
            detach,
            delete,
        } = self.life;
        [create.all(), attach.all(), detach.all(), delete.all()]
    }
}

impl Life {
    fn all(self) -> u64 {
        self.create.all() + self.attach.all() + self.detach.all() + self.delete.all()
    }
}

impl Requests {
    pub(super) fn all(self) -> u64 {
        self.writes + self.reads
    }
}

/// Measures on two clouds: one without latency, one with the latency of a real one.
pub(super) async fn measure(
    binary: &Path,
    program: &Program,
    idle: u64,
) -> anyhow::Result<Figures> {
    let mut bench = Bench::open(binary, program, "none", 1).await?;
    bench.life("first").await?;
    let life = bench.life("second").await?;
    tokio::time::sleep(OLD).await;
    let later = bench.life("third").await?;
    bench.fill(MANY).await?;
    let list_reads = bench.lists().await?;
    let idle_requests = bench.idle(idle, None).await?;
    let idle_listed = bench.idle(idle, Some(Duration::from_secs(60))).await?;
    let rss = bench.driver.memory()?;
    drop(bench);
    let mut bench = Bench::open(binary, program, "real", 20).await?;
    let attachment_alone = bench.attachment_alone().await?;
    let hundred = bench.crowd(100, 20, 5).await?;
    let five_hundred = bench.crowd(500, 100, 20).await?;
    Ok(Figures {
        life,
        later,
        hundred,
        five_hundred,
        attachment_alone,
        list_reads,
        idle: idle_requests,
        idle_listed,
        rss,
    })
}

struct Bench {
    driver: Driver,
    world: World,
    servers: Vec<String>,
}

impl Bench {
    async fn open(
        binary: &Path,
        program: &Program,
        latency: &str,
        servers: usize,
    ) -> anyhow::Result<Self> {
        crate::report(&format!("{}, latency {latency}", program.name()));
        let mut world = World::open(binary, &["--latency", latency])?;
        let servers = (0..servers).map(|number| world.server(&format!("node-{number}")));
        let servers = servers.collect::<anyhow::Result<_>>()?;
        let driver = Driver::start(program, Half::Controller, &world, "csi", PATIENCE).await?;
        Ok(Self {
            driver,
            world,
            servers,
        })
    }

    fn requests(&mut self) -> anyhow::Result<Requests> {
        let (writes, reads) = self.world.requests()?;
        self.world.reset()?;
        Ok(Requests { writes, reads })
    }

    async fn life(&mut self, name: &str) -> anyhow::Result<Life> {
        let (client, server) = (self.driver.client().clone(), self.servers[0].clone());
        self.requests()?;
        let volume = create(&client, name).await?;
        let create = self.requests()?;
        attach(&client, &volume, &server).await?;
        let attach = self.requests()?;
        detach(&client, &volume, &server).await?;
        let detach = self.requests()?;
        delete(&client, &volume).await?;
        let delete = self.requests()?;
        Ok(Life {
            create,
            attach,
            detach,
            delete,
        })
    }

    async fn fill(&mut self, count: usize) -> anyhow::Result<()> {
        let client = self.driver.client().clone();
        let task = |number: usize| {
            let client = client.clone();
            let create = async move { create(&client, &format!("idle-{number}")).await };
            Box::pin(create) as _
        };
        each(count, 20, task).await?;
        Ok(())
    }

    async fn list(&self) -> anyhow::Result<usize> {
        let answer = self
            .driver
            .client()
            .call(&ListVolumesRequest::default())
            .await?;
        Ok(answer.entries.len())
    }

    async fn lists(&mut self) -> anyhow::Result<u64> {
        let found = self.list().await?;
        if found != MANY {
            bail!("ListVolumes has {found} volumes of {MANY}");
        }
        self.requests()?;
        for _ in 0..LISTS {
            self.list().await?;
        }
        Ok(self.requests()?.reads)
    }

    async fn idle(&mut self, seconds: u64, every: Option<Duration>) -> anyhow::Result<Requests> {
        let (begun, limit) = (Instant::now(), Duration::from_secs(seconds));
        self.requests()?;
        while begun.elapsed() < limit {
            let pause = every.unwrap_or(limit);
            tokio::time::sleep(pause.min(limit.saturating_sub(begun.elapsed()))).await;
            if every.is_some() {
                self.list().await?;
            }
        }
        self.requests()
    }

    /// Attaches volumes by the API of the cloud, one after the other.
    async fn attachment_alone(&mut self) -> anyhow::Result<f64> {
        let client = self.driver.client().clone();
        let (mut times, server) = (Vec::new(), self.servers[0].clone());
        for number in 0..ALONE {
            let volume = create(&client, &format!("alone-{number}")).await?;
            // The Go driver does not wait for this status.
            self.until(&volume, "available").await?;
            let path = format!("/compute/v2.1/servers/{server}/os-volume_attachments");
            let body = json!({"volumeAttachment": {"volumeId": volume}});
            let begun = Instant::now();
            self.world.client(false).call("POST", &path, Some(&body))?;
            self.until(&volume, "in-use").await?;
            times.push(begun.elapsed().as_secs_f64() * 1000.0);
            detach(&client, &volume, &server).await?;
            delete(&client, &volume).await?;
        }
        Ok(percentile(&mut times, 0.5))
    }

    /// Waits until Cinder reports the status for a volume.
    async fn until(&mut self, volume: &str, status: &str) -> anyhow::Result<()> {
        let cloud = self.world.client(false);
        let path = format!("/volume/v3/{}/volumes/{volume}", cloud.project());
        loop {
            let answer: Value = serde_json::from_slice(&cloud.get(&path)?)?;
            if answer["volume"]["status"] == status {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn crowd(
        &mut self,
        count: usize,
        at_once: usize,
        servers: usize,
    ) -> anyhow::Result<Crowd> {
        let client = self.driver.client().clone();
        self.requests()?;
        let server = |number: usize| self.servers[number % servers].clone();
        let begun = Instant::now();
        let (volumes, _) = each(count, at_once, |number| {
            let client = client.clone();
            Box::pin(async move { create(&client, &format!("crowd-{count}-{number}")).await })
        })
        .await?;
        tokio::time::sleep(SETTLED).await;
        let (_, mut times) = each(count, at_once, |number| {
            let (client, volume, server) =
                (client.clone(), volumes[number].clone(), server(number));
            Box::pin(async move { attach(&client, &volume, &server).await })
        })
        .await?;
        each(count, at_once, |number| {
            let (client, volume, server) =
                (client.clone(), volumes[number].clone(), server(number));
            Box::pin(async move { detach(&client, &volume, &server).await })
        })
        .await?;
        each(count, at_once, |number| {
            let (client, volume) = (client.clone(), volumes[number].clone());
            Box::pin(async move { delete(&client, &volume).await })
        })
        .await?;
        Ok(Crowd {
            seconds: begun.elapsed().saturating_sub(SETTLED).as_secs_f64(),
            requests: self.requests()?,
            attach_median: percentile(&mut times, 0.5),
            attach_percentile_99: percentile(&mut times, 0.99),
        })
    }
}
