use std::io::Write as _;

use super::*;

fn written(lines: &str) -> (tempfile::TempDir, File, Log) {
    let directory = tempfile::tempdir().unwrap();
    let mut file = File::create(directory.path().join(FILE)).unwrap();
    file.write_all(lines.as_bytes()).unwrap();
    let log = Log::open(directory.path()).unwrap().unwrap();
    (directory, file, log)
}

#[test]
fn the_last_lines_are_those_at_the_end() {
    for (tail, expected) in [
        (None, "a\nb\nc\n"),
        (Some(2), "b\nc\n"),
        (Some(0), ""),
        (Some(9), "a\nb\nc\n"),
    ] {
        let (_directory, _file, mut log) = written("a\nb\nc\n");
        assert_eq!(log.rest(tail, false).unwrap(), expected, "{tail:?}");
    }
}

#[test]
fn a_line_is_printed_once_it_has_ended_and_no_line_twice() {
    let (directory, mut file, mut log) = written("a\nbe");
    assert_eq!(log.rest(None, false).unwrap(), "a\n");
    assert_eq!(log.more(directory.path()).unwrap(), "");
    file.write_all("gun\nc".as_bytes()).unwrap();
    assert_eq!(log.more(directory.path()).unwrap(), "begun\n");
    file.write_all("\n".as_bytes()).unwrap();
    assert_eq!(log.more(directory.path()).unwrap(), "c\n");
    assert_eq!(log.more(directory.path()).unwrap(), "");
}

#[test]
fn a_log_that_is_not_followed_is_read_to_its_last_byte() {
    let (_directory, _file, mut log) = written("a\nkilled her");
    assert_eq!(log.rest(Some(1), true).unwrap(), "killed her\n");
}

#[test]
fn the_log_of_another_up_is_followed_from_its_beginning() {
    let (directory, _file, mut log) = written("of the first\n");
    assert_eq!(log.rest(None, false).unwrap(), "of the first\n");
    std::fs::write(directory.path().join(FILE), "new\n").unwrap();
    assert_eq!(log.more(directory.path()).unwrap(), "new\n");
}

#[test]
fn a_long_log_is_read_to_its_end_and_a_line_without_an_end_in_pieces() {
    let line = "x".repeat(1000) + "\n";
    let lines = line.repeat(500);
    let (_directory, _file, mut log) = written(&lines);
    assert_eq!(log.rest(None, false).unwrap(), lines);
    let (_directory, _file, mut log) = written(&"y".repeat(200_000));
    let printed = log.rest(None, false).unwrap();
    assert!(printed.len() as u64 >= 2 * CHUNK, "{}", printed.len());
}
