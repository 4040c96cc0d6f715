use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use secrecy::SecretString;

use crate::messages::*;
use crate::server::Service;
use crate::tls::{self, Tls};
use crate::{Client, Code, Error, Status};

const LIMIT: Duration = Duration::from_secs(60);

/// CA, and a certificate signed by the CA with its key, in PEM.
struct Site {
    ca: String,
    certificate: String,
    key: SecretString,
}

fn site() -> Site {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let ca = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let named = CertificateParams::new(vec!["a-member".to_owned()]).unwrap();
    let certificate = named.signed_by(&key, &issuer).unwrap();
    Site {
        ca: ca.pem(),
        certificate: certificate.pem(),
        key: key.serialize_pem().into(),
    }
}

/// A cluster of three members, seen from the first.
struct Three;

impl Service for Three {
    fn member_list(&self, request: MemberListRequest) -> Result<MemberListResponse, Status> {
        assert!(request.linearizable);
        let member = |id| Member {
            id,
            name: format!("member-{id}"),
            is_learner: id == 3,
            ..Member::default()
        };
        Ok(MemberListResponse {
            header: None,
            members: vec![member(1), member(2), member(3)],
        })
    }

    fn member_add(&self, _: MemberAddRequest) -> Result<MemberAddResponse, Status> {
        Err(Status::new(
            Code::Unavailable,
            "etcdserver: unhealthy cluster",
        ))
    }

    fn member_remove(&self, request: MemberRemoveRequest) -> Result<MemberRemoveResponse, Status> {
        let message = format!("etcdserver: 100 % unknown – {}", request.id);
        Err(Status::new(Code::NotFound, message))
    }

    fn member_promote(&self, _: MemberPromoteRequest) -> Result<MemberPromoteResponse, Status> {
        Ok(MemberPromoteResponse::default())
    }

    fn alarm(&self, _: AlarmRequest) -> Result<AlarmResponse, Status> {
        let alarm = AlarmMember {
            member_id: 2,
            alarm: AlarmType::Nospace as i32,
        };
        Ok(AlarmResponse {
            header: None,
            alarms: vec![alarm],
        })
    }

    fn status(&self, _: StatusRequest) -> Result<StatusResponse, Status> {
        Ok(StatusResponse {
            leader: 1,
            ..StatusResponse::default()
        })
    }

    fn move_leader(&self, _: MoveLeaderRequest) -> Result<MoveLeaderResponse, Status> {
        Ok(MoveLeaderResponse::default())
    }

    fn peers(&self) -> (u64, Vec<(u64, bool)>) {
        (1, vec![(2, false), (0xb7e1_51b7_0a49_9ca1, true)])
    }
}

async fn connect(server: &Site, client: &Site, trusted: &str) -> Result<Client, Error> {
    let (here, there) = tokio::io::duplex(1 << 16);
    let accept = tls::server(&server.ca, &server.certificate, &server.key).unwrap();
    tokio::spawn(crate::server::serve(there, accept, Arc::new(Three)));
    let tls = Tls::client(trusted, &client.certificate, &client.key).unwrap();
    Client::connect(here, &tls, LIMIT).await
}

#[tokio::test]
async fn a_member_is_asked_over_any_stream() {
    let site = site();
    let client = connect(&site, &site, &site.ca).await.unwrap();
    let (members, status, alarms) =
        tokio::join!(client.members(), client.status(), client.alarms());
    let members = members.unwrap();
    let names: Vec<_> = members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["member-1", "member-2", "member-3"]);
    assert!(members[2].is_learner);
    assert_eq!(status.unwrap().leader, 1);
    assert_eq!(alarms.unwrap()[0].alarm(), AlarmType::Nospace);
    let peers = client.peers().await.unwrap();
    assert_eq!(Vec::from_iter(peers), [0xb7e1_51b7_0a49_9ca1]);
    client.move_leader(2).await.unwrap();
    client.promote(3).await.unwrap();
}

#[tokio::test]
async fn a_refusal_comes_in_etcds_words() {
    let site = site();
    let client = connect(&site, &site, &site.ca).await.unwrap();
    let refusal = client.add("https://10.0.0.9:2380", true).await.unwrap_err();
    assert_eq!(refusal.to_string(), "etcdserver: unhealthy cluster");
    assert_eq!(refusal.status().unwrap().code, Code::Unavailable);
    let refusal = client.remove(7).await.unwrap_err();
    assert_eq!(refusal.to_string(), "etcdserver: 100 % unknown – 7");
    assert_eq!(refusal.status().unwrap().code, Code::NotFound);
}

#[tokio::test]
async fn a_member_of_another_authority_and_a_client_of_another_are_rejected() {
    let (ours, other) = (site(), site());
    let rejected = connect(&ours, &ours, &other.ca).await.err().unwrap();
    assert!(matches!(rejected, Error::Tls(_)), "{rejected}");
    // With TLS 1.3 the client sees the rejection of its certificate with the first response.
    let late = match connect(&ours, &other, &ours.ca).await {
        Ok(client) => client.members().await.err().unwrap(),
        Err(early) => early,
    };
    assert!(late.status().is_none(), "{late}");
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_the_limit() {
    let site = site();
    let (here, _there) = tokio::io::duplex(1 << 16);
    let tls = Tls::client(&site.ca, &site.certificate, &site.key).unwrap();
    let silent = Client::connect(here, &tls, LIMIT).await.err().unwrap();
    assert_eq!(silent.to_string(), "no answer within 60 s");
}
