use super::*;

const TAGGED: &str = "ferrostack-cloud-0123";
/// The hash of `secretpw` with which RabbitMQ 3.10.8 answered, and that of RabbitMQ 4.0.5.
const HASHES: [&str; 2] = [
    "mcs/BZpzye0leKLnccmX+B3FAOFxckFLZbzjf0hJ3POMiBcG",
    "mcAAJLtcMfyCk58Fwsr4VWifhshrElsk+ioJMMIKZTYiCGFb",
];

fn login(user: &str) -> Login {
    Login {
        user: user.to_owned(),
        password: Password::new("secretpw"),
    }
}

fn broker(names: &[&str]) -> Broker {
    let account = |name: &&str| ((*name).to_owned(), vec![login(name)]);
    Broker {
        uid: "0123".to_owned(),
        admin: Password::new("admin"),
        accounts: names.iter().map(account).collect(),
    }
}

/// What RabbitMQ answers when everything is written for these names.
fn complete(names: &[&str]) -> [Json; 3] {
    let all = |one: &dyn Fn(&str) -> Json| Json::Array(names.iter().map(|it| one(it)).collect());
    let mut hosts = all(&|name| {
        json!({"name": name, "tags": [TAGGED], "description": "",
        "metadata": {"description": "", "tags": [TAGGED]}})
    });
    let mut users = all(&|name| {
        json!({"name": name, "tags": [TAGGED], "limits": {},
        "password_hash": HASHES[0], "hashing_algorithm": SHA256})
    });
    let mut rights = all(&|name| {
        json!({"user": name, "vhost": name,
        "configure": ".*", "write": ".*", "read": ".*"})
    });
    // What a new broker has.
    let list = |it: &mut Json, one: Json| it.as_array_mut().unwrap().push(one);
    list(
        &mut hosts,
        json!({"name": "/", "tags": [], "description": "Default virtual host"}),
    );
    list(
        &mut users,
        json!({"name": ADMIN, "tags": ["administrator"], "password_hash": "AAAA"}),
    );
    list(
        &mut rights,
        json!({"user": ADMIN, "vhost": "/",
        "configure": ".*", "write": ".*", "read": ".*"}),
    );
    [hosts, users, rights]
}

fn planned(broker: &Broker, answers: [Json; 3]) -> AccountPlan {
    broker.plan(&BrokerSeen::read(answers).unwrap())
}

fn doing(plan: &AccountPlan) -> Vec<&str> {
    plan.writes.iter().map(|it| it.doing.as_str()).collect()
}

#[test]
fn a_new_broker_gets_hosts_users_and_rights_in_an_order_in_which_each_is_accepted() {
    let plan = planned(&broker(&["neutron", "nova"]), complete(&[]));
    let expected = [
        "creating virtual host neutron",
        "creating user neutron",
        "granting user neutron all rights in virtual host neutron",
        "creating virtual host nova",
        "creating user nova",
        "granting user nova all rights in virtual host nova",
    ];
    assert_eq!(doing(&plan), expected);
    let paths: Vec<&str> = plan.writes.iter().map(|it| it.path.as_str()).collect();
    assert_eq!(
        paths[3..],
        [
            "/api/vhosts/nova",
            "/api/users/nova",
            "/api/permissions/nova/nova"
        ]
    );
    let user: Json = serde_json::from_str(plan.writes[4].body.as_ref().unwrap().expose()).unwrap();
    assert_eq!(user, json!({"password": "secretpw", "tags": TAGGED}));
    assert!(!format!("{plan:?}").contains("secretpw"));
}

#[test]
fn nothing_is_written_when_everything_is_there() {
    let plan = planned(
        &broker(&["neutron", "nova"]),
        complete(&["neutron", "nova"]),
    );
    assert_eq!(plan, AccountPlan::default());
    let mut answers = complete(&["nova"]);
    answers[1][0]["password_hash"] = HASHES[1].into();
    answers[1][0]["tags"] = TAGGED.into();
    assert_eq!(planned(&broker(&["nova"]), answers), AccountPlan::default());
}

#[test]
fn each_drift_is_repaired_by_one_write() {
    let reset = "resetting user nova";
    let grant = "granting user nova all rights in virtual host nova";
    for (list, field, value, expected) in [
        (1, "password_hash", json!(""), reset),
        (
            1,
            "password_hash",
            json!("A2h+z3A32ACVPVLNnhS+CuNF2ueNEQIw3oTzQREzUAUI1+w1"),
            reset,
        ),
        (
            1,
            "hashing_algorithm",
            json!("rabbit_password_hashing_md5"),
            reset,
        ),
        (1, "tags", json!([TAGGED, "administrator"]), reset),
        (2, "configure", json!("^$"), grant),
        (2, "write", json!("x"), grant),
        (2, "read", json!(""), grant),
        (2, "user", json!("other"), grant),
    ] {
        let mut answers = complete(&["nova"]);
        answers[list][0][field] = value;
        let plan = planned(&broker(&["nova"]), answers);
        assert_eq!(doing(&plan), [expected], "{list} {field}");
    }
    let mut answers = complete(&["nova"]);
    answers[0].as_array_mut().unwrap().remove(0);
    let plan = planned(&broker(&["nova"]), answers);
    assert_eq!(doing(&plan), ["creating virtual host nova"]);
}

#[test]
fn what_has_a_wanted_name_and_no_tag_is_a_conflict_and_nothing_is_written() {
    for (list, kind) in [(0, "virtual host nova"), (1, "user nova")] {
        for tags in [json!([]), json!(["ferrostack-cloud-4567"]), json!("")] {
            let mut answers = complete(&["nova"]);
            answers[list][0]["tags"] = tags;
            answers[2] = json!([]);
            let plan = planned(&broker(&["nova", "neutron"]), answers);
            assert_eq!(doing(&plan), Vec::<&str>::new());
            assert!(plan.conflicts[0].contains(kind), "{:?}", plan.conflicts);
            assert_eq!(plan.conflicts.len(), 1);
        }
    }
}

#[test]
fn what_is_no_longer_wanted_is_removed_and_what_is_not_ours_is_left() {
    let mut answers = complete(&["nova", "old", "foreign"]);
    answers[0][2]["tags"] = json!([]);
    answers[1][2]["tags"] = json!(["ferrostack-cloud-4567"]);
    let elsewhere =
        json!({"user": "nova", "vhost": "/", "configure": "", "write": "", "read": ".*"});
    answers[2].as_array_mut().unwrap().push(elsewhere);
    let plan = planned(&broker(&["nova"]), answers);
    let expected = [
        "removing the rights of user nova in virtual host /",
        "deleting user old",
        "deleting virtual host old",
    ];
    assert_eq!(doing(&plan), expected);
    assert_eq!(plan.writes[0].path, "/api/permissions/%2F/nova");
}

#[test]
fn a_host_has_both_halves_of_an_account_and_loses_the_one_that_is_not_wanted() {
    let mut both = broker(&["nova"]);
    both.accounts
        .insert("nova".to_owned(), vec![login("nova-b"), login("nova")]);
    let plan = planned(&both, complete(&["nova"]));
    let expected = [
        "creating user nova-b",
        "granting user nova-b all rights in virtual host nova",
    ];
    assert_eq!(doing(&plan), expected);
    let mut answers = complete(&["nova", "nova-b"]);
    answers[0].as_array_mut().unwrap().remove(1);
    answers[2][1]["vhost"] = "nova".into();
    assert_eq!(planned(&both, answers.clone()), AccountPlan::default());
    let mut second = both.clone();
    second
        .accounts
        .insert("nova".to_owned(), vec![login("nova-b")]);
    assert_eq!(
        doing(&planned(&second, answers.clone())),
        ["deleting user nova"]
    );
    // A user of somebody else.
    answers[1][1]["tags"] = json!([]);
    let conflicts = planned(&both, answers).conflicts;
    assert!(
        conflicts[0].contains("user nova-b is there"),
        "{conflicts:?}"
    );
}

#[test]
fn answers_of_another_form_are_errors_without_their_values() {
    let mut answers = complete(&["nova"]);
    answers[1] = json!({"password_hash": "secretpw"});
    let error = BrokerSeen::read(answers).unwrap_err();
    assert!(
        error.contains("list of users") && !error.contains("secretpw"),
        "{error}"
    );
}
