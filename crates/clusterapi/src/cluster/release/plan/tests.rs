use super::*;

fn object(name: &str) -> Object {
    Object {
        name: ("shop".to_owned(), name.to_owned()),
        uid: format!("uid of {name}"),
        deleting: false,
    }
}

/// An object of no namespace.
fn whole(name: &str) -> Object {
    Object {
        name: (String::new(), name.to_owned()),
        ..object(name)
    }
}

fn volume(claim: &str, retained: bool) -> Volume {
    let of = object(claim);
    Volume {
        object: whole(&format!("pv of {claim}")),
        retained,
        claim: Some((of.name, of.uid)),
    }
}

fn claim(name: &str) -> Claim {
    Claim {
        object: object(name),
        pending: false,
    }
}

fn user(name: &str, claim: &str) -> User {
    User {
        object: object(name),
        claims: vec![claim.to_owned()],
        ephemeral: false,
        set: None,
    }
}

#[test]
fn a_volume_goes_or_stays_as_its_reclaim_policy_says() {
    let seen = Seen {
        volumes: vec![volume("kept", true), volume("gone", false)],
        claims: vec![claim("kept"), claim("gone"), claim("of another driver")],
        users: vec![
            user("a", "kept"),
            user("b", "gone"),
            user("c", "of another driver"),
        ],
        ..Seen::default()
    };
    let found = plan(&seen, Volumes::Policy);
    let expected = [Step::Claim(object("gone")), Step::Pod(object("b"))];
    assert_eq!(found.steps, expected);
    assert_eq!(found.volumes, ["pv of gone"]);
    let found = plan(&seen, Volumes::Delete);
    assert_eq!(
        found.steps,
        [
            Step::Reclaim(whole("pv of kept")),
            Step::Claim(object("kept")),
            Step::Claim(object("gone")),
            Step::Pod(object("a")),
            Step::Pod(object("b")),
        ]
    );
    assert!(plan(&seen, Volumes::Keep).is_empty());
}

#[test]
fn what_would_create_claims_again_goes_before_its_pods() {
    let of_set = User {
        set: Some(("db".to_owned(), "uid of db".to_owned())),
        ..user("db-0", "data-db-0")
    };
    let scratch = User {
        ephemeral: true,
        ..user("web", "web-scratch")
    };
    let seen = Seen {
        volumes: vec![volume("data-db-0", false), volume("web-scratch", false)],
        claims: vec![claim("data-db-0"), claim("web-scratch")],
        users: vec![of_set, scratch],
        nodes: vec![whole("n")],
        ..Seen::default()
    };
    let steps = plan(&seen, Volumes::Policy).steps;
    assert_eq!(
        steps[2..],
        [
            Step::Cordon(whole("n")),
            Step::Set(object("db")),
            Step::Pod(object("db-0")),
            Step::Pod(object("web")),
        ]
    );
}

#[test]
fn what_is_being_deleted_is_waited_for() {
    let gone = |name: &str| Object {
        deleting: true,
        ..object(name)
    };
    let seen = Seen {
        services: vec![gone("web"), object("api")],
        volumes: vec![volume("a", false), volume("released", false)],
        claims: vec![Claim {
            object: gone("a"),
            pending: false,
        }],
        users: vec![User {
            object: gone("p"),
            ..user("p", "a")
        }],
        ..Seen::default()
    };
    let found = plan(&seen, Volumes::Policy);
    assert_eq!(found.steps, [Step::Service(object("api"))]);
    assert_eq!(found.services, ["shop/web", "shop/api"]);
    assert_eq!(found.claims, ["shop/a"]);
    assert_eq!(found.volumes, ["pv of a", "pv of released"]);
    assert!(plan(&Seen::default(), Volumes::Delete).is_empty());
}

#[test]
fn a_claim_of_the_same_name_that_came_later_is_not_that_of_the_volume() {
    let mut later = claim("a");
    later.object.uid = "later".to_owned();
    let waiting = Claim {
        pending: true,
        ..claim("waits for a volume")
    };
    let seen = Seen {
        volumes: vec![volume("a", false)],
        claims: vec![later, waiting.clone()],
        ..Seen::default()
    };
    let steps = plan(&seen, Volumes::Policy).steps;
    assert_eq!(steps, [Step::Claim(waiting.object)]);
}
