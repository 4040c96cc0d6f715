use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const ID: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

/// An image that genisoimage, or mkfs.vfat and mcopy, made of the same directory.
fn image(compressed: &[u8]) -> Vec<u8> {
    let mut image = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(compressed);
    decoder.read_to_end(&mut image).unwrap();
    image
}

macro_rules! images {
    ($($name:literal)*) => {
        [$(($name, image(include_bytes!(concat!("../../tests/images/", $name, ".gz"))))),*]
    };
}

#[test]
fn the_document_is_read_from_every_kind_of_drive() {
    for (name, image) in
        images!("nova.iso" "joliet.iso" "rockridge.iso" "fat12.img" "fat16.img" "fat32.img")
    {
        let document = read_image(&image.as_slice()).unwrap();
        let document = document.unwrap_or_else(|| panic!("{name} is no config drive"));
        let facts = Facts::parse(&document).unwrap();
        assert_eq!(
            (facts.id.as_str(), facts.zone.as_str()),
            (ID, "az1"),
            "{name}"
        );
    }
}

#[test]
fn another_label_is_no_config_drive_and_a_cut_one_is_damaged() {
    for (name, mut image) in images!("nova.iso" "fat12.img") {
        // The first sectors are complete, the referenced ones are cut off.
        let short = if name == "nova.iso" { 40_000 } else { 600 };
        assert!(read_image(&&image[..short]).is_err(), "{name}");
        for label in [b"config-2", b"CONFIG-2"] {
            let places: Vec<usize> = (0..image.len() - 8)
                .filter(|at| &image[*at..*at + 8] == label)
                .collect();
            for at in places {
                image[at..at + 8].copy_from_slice(b"cidata  ");
            }
        }
        assert_eq!(read_image(&image.as_slice()).unwrap(), None, "{name}");
    }
    assert_eq!(read_image(&[0; 100_000].as_slice()).unwrap(), None);
    assert_eq!(read_image(&[].as_slice()).unwrap(), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No byte that is changed leads to a panic, to an endless chain, or past the end.
    #[test]
    fn a_damaged_drive_ends_in_an_answer(
        iso in any::<bool>(),
        changes in proptest::collection::vec((0_usize..70_000, any::<u8>()), 1..40),
        cut in any::<Option<usize>>(),
    ) {
        let [(_, nova), (_, fat)] = images!("nova.iso" "fat12.img");
        let mut image = if iso { nova } else { fat };
        for (at, byte) in changes {
            let at = at % image.len();
            image[at] = byte;
        }
        if let Some(cut) = cut {
            image.truncate(cut % image.len());
        }
        let read = read_image(&image.as_slice());
        prop_assert!(read.is_err() || read.is_ok());
    }

    #[test]
    fn a_label_is_a_label_or_empty_and_stays(zone in "\\PC*") {
        let label = label(&zone);
        let inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        prop_assert!(label.len() <= 63 && label.chars().all(inside));
        prop_assert!(!label.starts_with(['-', '_', '.']) && !label.ends_with(['-', '_', '.']));
        prop_assert_eq!(super::label(&label), label);
    }
}

#[test]
fn a_zone_becomes_a_label_as_in_the_cloud_controller_manager() {
    let long = "a".repeat(70);
    for (zone, expected) in [
        ("nova", "nova"),
        ("Zone 1 / rack 2", "Zone-1-rack-2"),
        (" (x) ", "x"),
        ("é", ""),
        ("", ""),
        (&long, &long[..63]),
    ] {
        assert_eq!(label(zone), expected, "{zone}");
    }
}

#[test]
fn only_a_document_with_a_uuid_is_believed() {
    let facts = Facts::parse(
        br#"{"uuid": "0A1B2C3D-4E5F-6071-8293-A4B5C6D7E8F9", "availability_zone": null, "devices": [
            {"type": "disk", "bus": "scsi", "address": "0:0:0:2", "serial": "v", "tags": []},
            {"type": "disk", "bus": "scsi", "address": "0:0:0:3"},
            {"type": "nic", "bus": "pci", "address": "a", "mac": "m"}]}"#,
    )
    .unwrap();
    assert_eq!((facts.id.as_str(), facts.zone.as_str()), (ID, ""));
    assert_eq!(facts.disks.len(), 1);
    for (body, words) in [
        (r#"{"uuid": "i-0000000a"}"#, "`i-0000000a`"),
        (r#"{"uuid": "../../x"}"#, "`../../x`"),
        ("{}", "``"),
        (
            r#"{"uuid": "0a1b2c3d-4e5f-6071-8293-a4b5c6"#,
            "no such document",
        ),
        ("<html>404</html>", "no such document"),
        ("", "no such document"),
    ] {
        let error = Facts::parse(body.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn the_order_of_sources_is_that_of_cloud_conf() {
    use Source::{ConfigDrive, Service};
    for (text, order) in [
        ("", vec![ConfigDrive, Service]),
        ("metadataService, configDrive", vec![Service, ConfigDrive]),
        ("metadataService", vec![Service]),
    ] {
        assert_eq!(Source::order(text), Ok(order));
    }
    let error = Source::order("configDrive,ec2").unwrap_err().to_string();
    assert!(error.contains("`ec2`"), "{error}");
}

/// A server that answers each connection with these bytes, and counts them.
async fn server(answer: Vec<u8>) -> (std::net::SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            let mut request = [0; 1024];
            let length = stream.read(&mut request).await.unwrap();
            let path = b"GET /openstack/latest/meta_data.json HTTP/1.1\r\n";
            assert!(request[..length].starts_with(path));
            // The client may have seen enough.
            drop(stream.write_all(&answer).await);
            drop(stream.shutdown().await);
        }
    });
    (address, count)
}

fn answer(status: &str, length: usize, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

fn absent() -> Drives {
    Drives::new("/no/such/sys", "/no/such/dev")
}

#[tokio::test]
async fn each_answer_of_the_service_has_its_words() {
    let document = format!(r#"{{"uuid": "{ID}"}}"#);
    let endless = " ".repeat(2 << 20);
    for (answer, words) in [
        (answer("200 OK", document.len(), &document), ""),
        (answer("404 Not Found", 2, "no"), "answers 404 Not Found"),
        (answer("500 Internal Server Error", 0, ""), "answers 500"),
        (answer("200 OK", 1000, &document), "broke off"),
        (
            answer("200 OK", endless.len(), &endless),
            "length limit exceeded",
        ),
        (answer("200 OK", 6, "<html>"), "no such document"),
        (b"SSH-2.0-OpenSSH_9.2\r\n".to_vec(), "broke off"),
        (Vec::new(), "broke off"),
    ] {
        let (address, _) = server(answer).await;
        let service = Service::new(address, Duration::from_secs(60));
        let metadata = Metadata::new(
            vec![Source::ConfigDrive, Source::Service],
            absent(),
            service,
        );
        match metadata.facts().await {
            Ok(facts) => assert_eq!((facts.id.as_str(), words), (ID, "")),
            Err(error) => {
                let error = error.to_string();
                assert!(!words.is_empty() && error.contains(words), "{error}");
                assert!(error.contains("no disk is labelled config-2"), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn a_service_that_never_answers_ends_with_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = Service::new(address, Duration::from_millis(50));
    let error = service.read(FILE).await.unwrap_err();
    assert!(matches!(error, service::Error::Timeout { .. }), "{error}");
    drop(listener);
    let error = service.read(FILE).await.unwrap_err();
    assert!(
        matches!(error, service::Error::Connection { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn facts_are_read_again_after_ten_minutes_and_after_a_failure() {
    let document = format!(r#"{{"uuid": "{ID}"}}"#);
    let (address, count) = server(answer("200 OK", document.len(), &document)).await;
    let service = Service::new(address, Duration::from_secs(60));
    let metadata = Metadata::new(vec![Source::Service], absent(), service);
    metadata.facts().await.unwrap();
    metadata.facts().await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 1);
    age().await;
    metadata.facts().await.unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 2);

    let (address, count) = server(answer("503 Service Unavailable", 0, "")).await;
    let service = Service::new(address, Duration::from_secs(60));
    let failing = Metadata::new(vec![Source::Service], absent(), service);
    failing.facts().await.unwrap_err();
    failing.facts().await.unwrap_err();
    assert_eq!(count.load(Ordering::Relaxed), 2);
    // Facts of another server are not believed, as long as these are known.
    let other = format!(r#"{{"uuid": "{}"}}"#, ID.replace('0', "1"));
    let (address, count_of_other) = server(answer("200 OK", other.len(), &other)).await;
    let service = Service::new(address, Duration::from_secs(60));
    let confused = Metadata::new(vec![Source::Service], absent(), service);
    *confused.last.lock().await = metadata.last.lock().await.clone();
    age().await;
    assert_eq!(confused.facts().await.unwrap().id, ID);
    assert_eq!(confused.facts().await.unwrap().id, ID);
    assert_eq!(count_of_other.load(Ordering::Relaxed), 2);
    // Old facts are better than none.
    let old = metadata.last.lock().await.clone();
    *failing.last.lock().await = old;
    age().await;
    assert_eq!(failing.facts().await.unwrap().id, ID);
    assert_eq!(failing.facts().await.unwrap().id, ID);
    assert_eq!(count.load(Ordering::Relaxed), 4);
}

/// Ten minutes later.
async fn age() {
    tokio::time::pause();
    tokio::time::advance(AGE).await;
    tokio::time::resume();
}

#[tokio::test]
async fn the_service_says_where_a_disk_is_and_is_left_alone_when_it_fails() {
    let document = format!(
        r#"{{"uuid": "{ID}", "devices": [{{"type": "disk", "bus": "scsi", "address": "0:0:0:2", "serial": "v"}}]}}"#
    );
    let ask = async |address, volume: &'static str, order: Source| {
        let service = Service::new(address, Duration::from_secs(60));
        let metadata = Arc::new(Metadata::new(vec![order], absent(), service));
        let addresses = metadata.addresses();
        let asked = tokio::task::spawn_blocking(move || [addresses(volume), addresses(volume)]);
        asked.await.unwrap()
    };
    let (address, _) = server(answer("200 OK", document.len(), &document)).await;
    let found = Some(("scsi".to_owned(), "0:0:0:2".to_owned()));
    assert_eq!(
        ask(address, "v", Source::Service).await,
        [found.clone(), found]
    );
    assert_eq!(ask(address, "other", Source::Service).await, [None, None]);
    let (address, count) = server(answer("404 Not Found", 0, "")).await;
    assert_eq!(ask(address, "v", Source::ConfigDrive).await, [None, None]);
    assert_eq!(count.load(Ordering::Relaxed), 0);
    assert_eq!(ask(address, "v", Source::Service).await, [None, None]);
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_drive_is_found_among_the_disks_and_no_volume_is_one() {
    let root = tempfile::tempdir().unwrap();
    let (sys, dev) = (root.path().join("sys"), root.path().join("dev"));
    let [(_, nova)] = images!("nova.iso");
    std::fs::create_dir_all(&dev).unwrap();
    // One of them is cut, and comes first.
    let cut = nova[..40_000].to_vec();
    for (name, content) in [("vda", &vec![0; 1 << 20]), ("sr0", &cut), ("vdz", &nova)] {
        std::fs::create_dir_all(sys.join("class/block").join(name)).unwrap();
        std::fs::write(dev.join(name), content).unwrap();
    }
    // Volumes of users, one of them with a partition.
    let evil = String::from_utf8_lossy(&nova)
        .replace("0a1b2c3d", "66666666")
        .into_bytes();
    for (name, disk, file, serial) in [
        ("vdc", "vdc", "serial", b"0a1b2c3d-4e5f-6071-8".as_slice()),
        (
            "sda",
            "sda",
            "device/vpd_pg80",
            b"\0\x80\0\x240a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
        ),
        ("vdd1", "vdd", "serial", b"0a1b2c3d-4e5f-6071-8"),
    ] {
        let block = sys.join("class/block");
        let attribute = sys.join("devices").join(disk).join(file);
        std::fs::create_dir_all(attribute.parent().unwrap()).unwrap();
        std::fs::write(attribute, serial).unwrap();
        let directory = match name == disk {
            true => sys.join("devices").join(disk),
            false => sys.join("devices").join(disk).join(name),
        };
        std::fs::create_dir_all(&directory).unwrap();
        if name != disk {
            std::fs::write(directory.join("partition"), "1").unwrap();
        }
        std::os::unix::fs::symlink(directory, block.join(name)).unwrap();
        std::fs::write(dev.join(name), &evil).unwrap();
    }
    // It is listed and cannot be opened: no medium.
    std::fs::create_dir_all(sys.join("class/block/sr1")).unwrap();
    let service = Service::new(([127, 0, 0, 1], 1).into(), Duration::from_secs(1));
    let metadata = Metadata::new(vec![Source::ConfigDrive], Drives::new(sys, dev), service);
    assert_eq!(metadata.facts().await.unwrap().id, ID);
}
