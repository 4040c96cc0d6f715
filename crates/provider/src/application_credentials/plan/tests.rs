use super::*;

const MARK: &str = "cloud-controller-manager [id]";
const DAY: SignedDuration = SignedDuration::from_hours(24);
const LIFE: SignedDuration = SignedDuration::from_hours(30 * 24);
const OWNER: Owner<'static> = Owner {
    user: "u",
    project: "p",
    rules: "r",
};

fn start() -> Timestamp {
    Timestamp::UNIX_EPOCH
}

fn seen(now: Timestamp) -> Seen<'static> {
    Seen {
        now,
        mark: MARK,
        owner: OWNER,
        is_wanted: true,
        in_use: None,
    }
}

/// A process that does what is planned, with a Keystone.
#[derive(Default)]
struct World {
    entries: Vec<Entry>,
    keystone: Vec<ApplicationCredential>,
    made: usize,
}

impl World {
    /// At most `most` steps; returns them.
    fn steps(&mut self, seen: &Seen<'_>, most: usize) -> Vec<Step> {
        let mut taken = Vec::new();
        while taken.len() < most {
            let Some(step) = next(&self.entries, &self.keystone, seen) else {
                break;
            };
            match step.clone() {
                Step::Add => self
                    .entries
                    .push(Entry::new("f", &seen.owner, seen.now, LIFE)),
                Step::Create(at) => {
                    let name = self.entries[at].name.clone();
                    assert!(self.keystone.iter().all(|it| it.name != name));
                    self.made += 1;
                    self.keystone.push(ApplicationCredential {
                        id: format!("id-{}", self.made),
                        name,
                        description: format!("for {MARK}"),
                        project_id: "p".to_owned(),
                    });
                }
                Step::Try(at, id) => self.entries[at].id = Some(id),
                Step::Forget(at) => drop(self.entries.remove(at)),
                Step::Revoke(id) => self.keystone.retain(|it| it.id != id),
            }
            taken.push(step);
            assert!(taken.len() < 50, "{taken:?}");
        }
        taken
    }

    fn all(&mut self, seen: &Seen<'_>) -> Vec<Step> {
        self.steps(seen, usize::MAX)
    }
}

#[test]
fn a_credential_is_recorded_created_and_tried_in_this_order() {
    let mut world = World::default();
    let steps = world.all(&seen(start()));
    let id = "id-1".to_owned();
    assert_eq!(steps, [Step::Add, Step::Create(0), Step::Try(0, id)]);
    assert!(world.all(&seen(start())).is_empty());
    let due = due(&world.entries, &seen(start()));
    assert_eq!(due, Some(start() + DAY * 20));
}

#[test]
fn killed_after_any_step_one_credential_is_there_in_the_end() {
    for most in 0..3 {
        let mut world = World::default();
        world.steps(&seen(start()), most);
        world.all(&seen(start()));
        assert_eq!((world.keystone.len(), world.made), (1, 1), "after {most}");
        assert_eq!(world.entries.len(), 1);
    }
}

#[test]
fn the_former_one_stays_until_the_new_one_has_been_in_use_for_some_minutes() {
    let mut world = World::default();
    world.all(&seen(start()));
    let later = start() + DAY * 20;
    let steps = world.all(&seen(later));
    assert_eq!(steps.len(), 3, "{steps:?}");
    assert_eq!(world.keystone.len(), 2);
    let name = world.entries[1].name.clone();
    let former = world.entries[0].name.clone();
    let used = |name, now| Seen {
        in_use: Some((name, later)),
        ..seen(now)
    };
    let hour = SignedDuration::from_hours(1);
    assert!(world.all(&used(&former, later + hour)).is_empty());
    assert!(world.all(&used(&name, later + GRACE / 2)).is_empty());
    let due = due(&world.entries, &used(&name, later));
    assert_eq!(due, Some(later + GRACE));
    let steps = world.all(&used(&name, later + GRACE));
    let id = "id-1".to_owned();
    assert_eq!(steps, [Step::Revoke(id), Step::Forget(0)]);
    assert_eq!(world.entries[0].name, name);
}

#[test]
fn without_a_sign_of_use_the_former_one_is_revoked_when_it_has_expired() {
    let mut world = World::default();
    world.all(&seen(start()));
    world.all(&seen(start() + DAY * 20));
    assert!(world.all(&seen(start() + DAY * 29)).is_empty());
    world.all(&seen(start() + DAY * 30));
    assert_eq!((world.keystone.len(), world.entries.len()), (1, 1));
}

#[test]
fn a_credential_whose_secret_is_lost_is_revoked_and_another_one_made() {
    let mut world = World::default();
    world.all(&seen(start()));
    world.entries.clear();
    let steps = world.all(&seen(start()));
    assert_eq!(steps[0], Step::Revoke("id-1".to_owned()));
    assert_eq!((world.keystone.len(), world.made), (1, 2));
}

#[test]
fn a_credential_of_the_same_name_without_the_mark_is_never_revoked() {
    let mut world = World::default();
    world.all(&seen(start()));
    world.keystone[0].description = "somebody's".to_owned();
    world.entries.clear();
    world.all(&Seen {
        is_wanted: false,
        ..seen(start())
    });
    assert_eq!(world.keystone.len(), 1);
}

#[test]
fn a_credential_deleted_by_hand_is_replaced() {
    let mut world = World::default();
    world.all(&seen(start()));
    world.keystone.clear();
    let steps = world.all(&seen(start()));
    assert_eq!(steps[..2], [Step::Forget(0), Step::Add]);
    assert_eq!(world.keystone.len(), 1);
}

#[test]
fn other_rules_or_another_user_need_another_credential() {
    let mut world = World::default();
    world.all(&seen(start()));
    let rules = Owner {
        rules: "s",
        ..OWNER
    };
    let seen_with = |owner| Seen {
        owner,
        ..seen(start() + DAY)
    };
    assert_eq!(due(&world.entries, &seen_with(rules)), Some(start() + DAY));
    world.all(&seen_with(rules));
    assert_eq!(world.keystone.len(), 2);
    // Another user sees nothing of the former ones, and cannot revoke them.
    let former = std::mem::take(&mut world.keystone);
    let other = Owner { user: "v", ..rules };
    world.all(&seen_with(other));
    assert_eq!((world.keystone.len(), world.entries.len()), (1, 3));
    let over = Seen {
        now: start() + DAY * 31,
        in_use: None,
        ..seen_with(other)
    };
    world.all(&over);
    assert!(world.entries.iter().all(|it| it.user == "v"));
    assert_eq!(former.len(), 2);
}

#[test]
fn at_the_end_all_are_revoked_and_forgotten_also_one_that_was_never_tried() {
    for most in 0..4 {
        let mut world = World::default();
        world.all(&seen(start()));
        world.steps(&seen(start() + DAY * 21), most);
        let end = Seen {
            is_wanted: false,
            ..seen(start() + DAY * 21)
        };
        world.all(&end);
        assert!(world.keystone.is_empty() && world.entries.is_empty());
        assert_eq!(due(&world.entries, &end), None);
    }
}

#[test]
fn a_record_is_read_as_it_was_written_and_shows_no_secret() {
    let entry = Entry::new("f", &OWNER, start(), LIFE);
    let text = serde_json::to_string(&entry).unwrap();
    assert_eq!(serde_json::from_str::<Entry>(&text).unwrap(), entry);
    use secrecy::ExposeSecret;
    let secret = entry.secret().expose_secret();
    assert!(text.contains(secret) && secret.len() == 64);
    assert!(!format!("{entry:?}").contains(secret));
}
