use super::*;

const MARK: &str = "ferrostack-cloud-0123";

fn identity() -> Identity {
    let url = |name: &str| {
        let urls = Urls {
            public: format!("http://{name}:1"),
            internal: format!("http://{name}:1"),
        };
        (name.to_owned(), urls)
    };
    Identity {
        uid: "0123".to_owned(),
        admin: Password::new("adminpw"),
        next: None,
        region: "One".to_owned(),
        users: [("nova".to_owned(), Password::new("secretpw"))].into(),
        catalogue: [("compute".to_owned(), url("nova"))].into(),
        keystone: Some(Urls {
            public: "http://keystone:5000/v3".to_owned(),
            internal: "http://keystone:5000/v3".to_owned(),
        }),
    }
}

/// What Keystone answers when everything is written, and with what its bootstrap made.
fn complete() -> ([Json; 5], Json) {
    let endpoint = |id: &str, service: &str, interface: &str, url: &str, description: Json| {
        json!({"id": id, "service_id": service, "interface": interface, "url": url, "enabled": true,
            "region_id": "One", "region": "One", "description": description, "links": {}})
    };
    let mut endpoints: Vec<Json> = INTERFACES
        .iter()
        .map(|it| endpoint(&format!("e-{it}"), "s1", it, "http://nova:1", json!(MARK)))
        .collect();
    endpoints.push(endpoint(
        "e0",
        "s0",
        "public",
        "http://keystone:5000/v3",
        Json::Null,
    ));
    let lists = [
        json!({"projects": [{"id": "p1", "name": "service", "domain_id": "default",
            "enabled": true, "description": MARK}]}),
        json!({"users": [
            {"id": "u1", "name": "nova", "domain_id": "default", "enabled": true, "description": MARK},
            {"id": "u0", "name": "admin", "domain_id": "default", "enabled": true}]}),
        json!({"roles": [
            {"id": "r0", "name": "admin", "domain_id": null, "description": null},
            {"id": "r1", "name": "service", "domain_id": null, "description": null},
            {"id": "r2", "name": "member", "domain_id": null, "description": null}]}),
        json!({"services": [
            {"id": "s1", "type": "compute", "name": "nova", "enabled": true, "description": MARK},
            {"id": "s0", "type": "identity", "name": "keystone", "enabled": true}]}),
        json!({"endpoints": endpoints}),
    ];
    let assigned = |user: &str, role: &str| json!({"scope": {"project": {"id": "p1"}}, "user": {"id": user}, "role": {"id": role}});
    let group =
        json!({"scope": {"project": {"id": "p1"}}, "group": {"id": "g"}, "role": {"id": "r0"}});
    let roles = json!({"role_assignments": [assigned("u1", "r0"), assigned("u1", "r1"), group]});
    (lists, roles)
}

fn seen((lists, assignments): ([Json; 5], Json)) -> IdentitySeen {
    let mut seen = IdentitySeen::read(lists).unwrap();
    seen.assigned(assignments).unwrap();
    seen
}

fn doing(plan: &AccountPlan) -> Vec<&str> {
    plan.writes.iter().map(|it| it.doing.as_str()).collect()
}

#[test]
fn nothing_is_written_when_everything_is_there() {
    let identity = identity();
    let seen = seen(complete());
    assert_eq!(identity.plan(&seen), AccountPlan::default());
    assert_eq!(identity.tried(&seen), ["nova"]);
    let path = identity.assignments(&seen).unwrap();
    assert_eq!(path, "/v3/role_assignments?scope.project.id=p1");
}

#[test]
fn a_new_keystone_gets_what_needs_no_ids_first() {
    let (mut lists, _) = complete();
    lists[0] = json!({"projects": []});
    lists[1]["users"].as_array_mut().unwrap().remove(0);
    lists[2]["roles"].as_array_mut().unwrap().remove(1);
    lists[3]["services"].as_array_mut().unwrap().remove(0);
    lists[4]["endpoints"] = json!([]);
    let identity = identity();
    let seen = IdentitySeen::read(lists).unwrap();
    assert_eq!(
        (identity.assignments(&seen), identity.tried(&seen)),
        (None, vec![])
    );
    let plan = identity.plan(&seen);
    let expected = [
        "creating project service",
        "creating role service",
        "creating user nova",
        "creating service compute",
    ];
    assert_eq!(doing(&plan), expected);
    assert!(plan.writes.iter().all(|it| {
        let body = it.body.as_ref().unwrap().expose();
        it.method == "POST" && body.contains(MARK)
    }));
    assert!(!format!("{plan:?}").contains("secretpw"));
}

#[test]
fn what_needs_ids_follows() {
    let (mut lists, _) = complete();
    lists[4]["endpoints"] = json!([]);
    let plan = identity().plan(&seen((lists, json!({"role_assignments": []}))));
    let expected = [
        "granting user nova role admin in project service",
        "granting user nova role service in project service",
        "creating endpoint public of compute",
        "creating endpoint internal of compute",
        "creating endpoint admin of compute",
    ];
    assert_eq!(doing(&plan), expected);
    assert_eq!(plan.writes[0].path, "/v3/projects/p1/users/u1/roles/r0");
    let endpoint: Json =
        serde_json::from_str(plan.writes[2].body.as_ref().unwrap().expose()).unwrap();
    let expected = json!({"endpoint": {"service_id": "s1", "region_id": "One", "interface": "public",
        "url": "http://nova:1", "description": MARK}});
    assert_eq!(endpoint, expected);
}

#[test]
fn each_drift_is_repaired_by_one_write() {
    for (list, path, value, expected) in [
        (
            0,
            "/projects/0/enabled",
            json!(false),
            "changing project service: enabled",
        ),
        (
            1,
            "/users/0/enabled",
            json!(false),
            "changing user nova: enabled",
        ),
        (
            3,
            "/services/0/enabled",
            json!(false),
            "changing service compute: enabled, name",
        ),
        (
            3,
            "/services/0/name",
            json!("x"),
            "changing service compute: enabled, name",
        ),
        (
            4,
            "/endpoints/0/enabled",
            json!(false),
            "changing endpoint public of compute: enabled, url",
        ),
        (
            4,
            "/endpoints/0/url",
            json!("http://x"),
            "changing endpoint public of compute: enabled, url",
        ),
    ] {
        let (mut lists, roles) = complete();
        *lists[list].pointer_mut(path).unwrap() = value;
        let plan = identity().plan(&seen((lists, roles)));
        assert_eq!(doing(&plan), [expected]);
        assert_eq!(plan.writes[0].method, "PATCH");
    }
    let mut other = seen(complete());
    other.rejected("nova");
    assert_eq!(
        doing(&identity().plan(&other)),
        ["changing user nova: password"]
    );

    let (lists, mut roles) = complete();
    roles["role_assignments"][1]["role"]["id"] = "r2".into();
    let plan = identity().plan(&seen((lists, roles)));
    let expected = [
        "granting user nova role service in project service",
        "withdrawing role r2 of user nova in project service",
    ];
    assert_eq!(doing(&plan), expected);
}

#[test]
fn what_has_a_wanted_name_and_no_mark_is_a_conflict_and_nothing_is_written() {
    for (list, path, kind) in [
        (0, "/projects/0/description", "project service"),
        (1, "/users/0/description", "user nova"),
        (3, "/services/0/description", "service compute (nova)"),
        (
            4,
            "/endpoints/1/description",
            "endpoint internal of compute",
        ),
    ] {
        for value in [Json::Null, json!(""), json!("ferrostack-cloud-4567")] {
            let (mut lists, _) = complete();
            *lists[list].pointer_mut(path).unwrap() = value;
            let plan = identity().plan(&seen((lists, json!({"role_assignments": []}))));
            assert_eq!(doing(&plan), Vec::<&str>::new());
            assert_eq!(plan.conflicts.len(), 1, "{:?}", plan.conflicts);
            assert!(plan.conflicts[0].contains(kind), "{:?}", plan.conflicts);
        }
    }
}

#[test]
fn what_is_ours_and_not_wanted_is_removed_and_what_is_of_others_is_left() {
    let (mut lists, roles) = complete();
    let push = |list: &mut Json, one: Json| list.as_array_mut().unwrap().push(one);
    push(
        &mut lists[1]["users"],
        json!({"id": "u2", "name": "old", "description": MARK}),
    );
    push(
        &mut lists[1]["users"],
        json!({"id": "u3", "name": "somebody", "description": "x"}),
    );
    push(
        &mut lists[3]["services"],
        json!({"id": "s2", "type": "compute", "name": "nova", "description": MARK}),
    );
    push(
        &mut lists[3]["services"],
        json!({"id": "s3", "type": "dns", "name": "x", "description": "x"}),
    );
    for (id, service, region) in [("e1", "s2", "One"), ("e2", "s1", "Two")] {
        push(
            &mut lists[4]["endpoints"],
            json!({"id": id, "service_id": service, "region_id": region,
            "interface": "public", "url": "http://x", "description": MARK}),
        );
    }
    let plan = identity().plan(&seen((lists, roles)));
    let paths: Vec<(&str, &str)> = plan
        .writes
        .iter()
        .map(|it| (it.method, it.path.as_str()))
        .collect();
    let expected = [
        "/v3/endpoints/e1",
        "/v3/endpoints/e2",
        "/v3/services/s2",
        "/v3/users/u2",
    ];
    assert_eq!(paths, expected.map(|it| ("DELETE", it)));
}

#[test]
fn answers_of_another_form_are_errors_without_their_values() {
    let (mut lists, _) = complete();
    lists[1] = json!({"users": {"password": "secretpw"}});
    let error = IdentitySeen::read(lists).unwrap_err();
    assert!(
        error.contains("list of users") && !error.contains("secretpw"),
        "{error}"
    );
}

#[test]
fn a_login_names_user_domain_and_project() {
    let body: Json = serde_json::from_str(identity().logins()[0].expose()).unwrap();
    let user = json!({"name": "admin", "domain": {"id": "default"}, "password": "adminpw"});
    assert_eq!(body["auth"]["identity"]["password"]["user"], user);
    assert_eq!(body["auth"]["scope"]["project"]["name"], "admin");
    let trial: Json = serde_json::from_str(identity().trial("nova").unwrap().expose()).unwrap();
    assert_eq!(trial["auth"]["scope"], Json::Null);
}

#[test]
fn public_endpoints_follow_the_exposure_and_no_others() {
    let mut identity = identity();
    let outside = |port: &str| Urls {
        public: format!("https://cloud.test:{port}"),
        internal: "http://keystone:5000/v3".to_owned(),
    };
    identity.keystone = Some(outside("5000/v3"));
    let nova = identity.catalogue.get_mut("compute").unwrap();
    nova.1.public = "https://cloud.test:1".to_owned();
    let plan = identity.plan(&seen(complete()));
    let written: Vec<(&str, &str, &str)> = plan
        .writes
        .iter()
        .map(|it| (it.method, it.path.as_str(), it.doing.as_str()))
        .collect();
    assert_eq!(
        written,
        [
            (
                "PATCH",
                "/v3/endpoints/e-public",
                "changing endpoint public of compute: enabled, url"
            ),
            (
                "PATCH",
                "/v3/endpoints/e0",
                "changing endpoint public of identity: url"
            ),
        ]
    );
    // An endpoint that somebody has described is theirs.
    let (mut lists, roles) = complete();
    let endpoints = lists[4]["endpoints"].as_array_mut().unwrap();
    let endpoint = endpoints.iter_mut().find(|it| it["id"] == "e0").unwrap();
    endpoint["description"] = "by hand".into();
    identity.catalogue.clear();
    let plan = identity.plan(&seen((lists, roles)));
    assert!(
        !doing(&plan).iter().any(|it| it.contains("identity")),
        "{plan:?}"
    );
}

#[test]
fn writes_of_a_round_do_not_depend_on_each_other() {
    let rounds = |plan: &AccountPlan| -> Vec<Vec<String>> {
        let words = |round: &[AccountWrite]| {
            let words = round.iter().map(|it| it.doing.clone());
            words.collect()
        };
        Identity::rounds(&plan.writes).map(words).collect()
    };
    let (mut lists, _) = complete();
    lists[0] = json!({"projects": []});
    lists[1]["users"].as_array_mut().unwrap().remove(0);
    lists[3]["services"].as_array_mut().unwrap().remove(0);
    lists[4]["endpoints"] = json!([]);
    let new = identity().plan(&IdentitySeen::read(lists).unwrap());
    assert_eq!(rounds(&new).len(), 1, "{new:?}");

    // Keystone deletes the endpoints of a service that is deleted.
    let mut none = identity();
    none.catalogue.clear();
    none.users.clear();
    let removed = rounds(&none.plan(&seen(complete())));
    let kinds = removed.iter().map(|round| {
        let kinds = round.iter().map(|it| it.split(' ').nth(1).unwrap());
        let mut kinds: Vec<&str> = kinds.collect();
        kinds.dedup();
        (kinds, round.len())
    });
    let kinds: Vec<(Vec<&str>, usize)> = kinds.collect();
    let expected = [("endpoint", 3), ("service", 1), ("user", 1)];
    assert_eq!(kinds, expected.map(|(kind, count)| (vec![kind], count)));
}
