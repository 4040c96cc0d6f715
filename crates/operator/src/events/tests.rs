use super::*;

fn subject(reason: &str) -> Subject {
    Subject {
        uid: "u".to_owned(),
        name: "demo".to_owned(),
        type_: Type::Warning,
        reason: reason.to_owned(),
        action: "Create".to_owned(),
    }
}

#[test]
fn a_repeated_note_is_counted_and_another_note_is_an_event_of_its_own() {
    let (mut published, now) = (HashMap::new(), Instant::now());
    let failed = subject("FailedCreate");
    let mut occurs = |note: &str, name: &str| {
        let how = occurred(&mut published, &failed, note, now);
        if how == How::Create {
            named(&mut published, &failed, note, Some(name.to_owned()));
        }
        how
    };
    assert_eq!(occurs("quota", "a"), How::Create);
    assert_eq!(occurs("quota", "b"), How::Count("a".to_owned(), 2));
    assert_eq!(occurs("no host", "c"), How::Create);
    assert_eq!(occurs("quota", "d"), How::Count("a".to_owned(), 3));
    assert_eq!(occurs("no host", "e"), How::Count("c".to_owned(), 2));
}

#[test]
fn ever_new_notes_are_limited_and_forgotten_events_begin_anew() {
    let (mut published, now) = (HashMap::new(), Instant::now());
    let failed = subject("FailedCreate");
    for number in 0..BURST {
        let how = occurred(&mut published, &failed, &number.to_string(), now);
        assert_eq!(how, How::Create);
    }
    assert_eq!(occurred(&mut published, &failed, "more", now), How::Skip);
    let other = subject("FailedDelete");
    assert_eq!(occurred(&mut published, &other, "more", now), How::Create);
    let later = now + CALM;
    assert_eq!(
        occurred(&mut published, &failed, "more", later),
        How::Create
    );
    let forgotten = later + REMEMBERED;
    assert_eq!(
        occurred(&mut published, &failed, "0", forgotten),
        How::Create
    );
    assert_eq!(published.len(), 1);
}

#[test]
fn an_event_that_was_not_stored_is_created_when_it_occurs_again() {
    let (mut published, now) = (HashMap::new(), Instant::now());
    let failed = subject("FailedCreate");
    assert_eq!(occurred(&mut published, &failed, "x", now), How::Create);
    assert_eq!(occurred(&mut published, &failed, "x", now), How::Skip);
    named(&mut published, &failed, "x", None);
    assert_eq!(occurred(&mut published, &failed, "x", now), How::Create);
}

#[test]
fn long_notes_end_within_the_limit_and_no_note_moves_the_cursor() {
    let short = shortened(&"ä".repeat(1000));
    assert!(short.len() <= 1024 && short.ends_with('…'));
    assert_eq!(shortened("a"), "a");
    let escaped = shortened(&"\u{1b}[2J\r\n\u{202e}".repeat(1000));
    assert!(escaped.len() <= 1024, "{}", escaped.len());
    assert!(!escaped.chars().any(printable::is_hidden), "{escaped}");
}
