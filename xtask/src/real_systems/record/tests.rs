use super::*;
use crate::real_systems::{RECORD, TABLE};

const TABLE_OF_TWO: &str = "\
tests: 10
systems:
- {name: cloud, shows: a cloud, up: 'true', minutes: 2}
steps:
- {name: one, shows: 'the first ([page](page.md))', inputs: [a], command: 'true', minutes: 3}
- {name: two, shows: the second, inputs: [a], command: 'true', minutes: 3}
";

#[test]
fn a_page_is_read_as_it_was_written() {
    let table = Table::parse(TABLE_OF_TWO).unwrap();
    let mut record = Record::default();
    record.insert("one", passed(Some("0123456789abcdef"), Some(19.0)));
    record.insert("cloud", passed(None, None));
    let text = record.text(&table);
    assert!(
        text.contains(
            "\n| one | the first ([page](page.md)) | 2.5 | 2026-11-28 09:20 | 5f7c2b53 | 0123456789abcdef | 19 |\n\
             | two | the second | – | – | – | – | – |\n"
        ),
        "{text}"
    );
    assert_eq!(Record::parse(&text, &table).unwrap(), record);
}

#[test]
fn a_row_of_a_step_that_is_no_more_is_dropped() {
    let table = Table::parse(TABLE_OF_TWO).unwrap();
    let text = "| gone | it | 1.0 | 2026-11-28 09:20 | 5f7c2b53 | 0123456789abcdef | 19 |\n";
    assert_eq!(Record::parse(text, &table).unwrap(), Record::default());
}

#[test]
fn a_row_that_cannot_be_read_is_named() {
    let table = Table::parse(TABLE_OF_TWO).unwrap();
    for (row, complaint) in [
        ("| one | it |", "the row of one: it has 2 cells, not seven"),
        (
            "| one | it | 1 | yesterday | c | i | 1 |",
            "the row of one: the date yesterday",
        ),
        (
            "| one | it | ten | 2026-11-28 09:20 | c | i | 1 |",
            "the row of one: the number ten",
        ),
    ] {
        let error = format!("{:#}", Record::parse(row, &table).unwrap_err());
        assert!(error.starts_with(complaint), "{error}");
    }
}

#[test]
fn the_page_of_this_workspace_is_what_the_task_writes() {
    let root = crate::root();
    let table = Table::read(&root.join(TABLE)).unwrap();
    let text = fs::read_to_string(root.join(RECORD)).unwrap();
    let record = Record::parse(&text, &table).unwrap();
    assert_eq!(
        record.text(&table),
        text,
        "`cargo xtask real-systems --minutes 0` writes {RECORD} anew"
    );
}

fn passed(inputs: Option<&str>, tests: Option<f64>) -> Pass {
    Pass {
        minutes: 2.5,
        at: "2026-11-28T09:20:00Z".parse().unwrap(),
        commit: "5f7c2b53".to_owned(),
        inputs: inputs.map(str::to_owned),
        tests,
    }
}
