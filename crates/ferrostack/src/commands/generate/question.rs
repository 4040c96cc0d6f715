//! Questions in a terminal: on standard error, because standard output may be a file.

use std::fmt::Write as _;

use api::printable;

use super::offer::Choices;
use crate::output;

/// Asks for the value of a variable until it is one of the [`Choices`]; `None` at the end of the input.
pub(super) async fn ask(variable: &str, choices: &Choices) -> anyhow::Result<Option<String>> {
    let mut text = prompt(variable, choices);
    loop {
        let Some(line) = output::answer_to(text).await? else {
            return Ok(None);
        };
        match answer(&line, choices) {
            Ok(value) => return Ok(Some(value)),
            Err(problem) => text = problem,
        }
    }
}

fn prompt(variable: &str, choices: &Choices) -> String {
    let mut text = format!("\nWhich {}? {} ({variable})\n", choices.what, choices.why);
    for (index, (value, description)) in choices.values.iter().enumerate() {
        let line = format!("  {:>2}  {value}  {description}", index + 1);
        let _ = writeln!(text, "{}", printable::line(line.trim_end()));
    }
    text.push_str(match choices.values.is_empty() {
        true => "Value: ",
        false => "Number or value [1]: ",
    });
    text
}

/// Value of a line of input, or a message before the next line.
fn answer(line: &str, choices: &Choices) -> Result<String, String> {
    let line = line.trim();
    let value = |index: usize| choices.values.get(index).map(|(value, _)| value.clone());
    if line.is_empty() {
        return value(0).ok_or_else(|| "Value: ".to_owned());
    }
    if choices.values.is_empty() || choices.values.iter().any(|(known, _)| known == line) {
        return Ok(line.to_owned());
    }
    let chosen = line
        .parse::<usize>()
        .ok()
        .and_then(|number| value(number.checked_sub(1)?));
    chosen.ok_or_else(|| format!("A number from 1 to {}: ", choices.values.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(values: &[&str]) -> Choices {
        Choices {
            what: "image",
            why: "there are several".to_owned(),
            values: values
                .iter()
                .map(|value| ((*value).to_owned(), "about it".to_owned()))
                .collect(),
        }
    }

    #[test]
    fn an_answer_is_a_number_a_value_or_nothing_for_the_first() {
        let two = choices(&["a", "b"]);
        assert_eq!(answer("2\n", &two).unwrap(), "b");
        assert_eq!(answer("b\n", &two).unwrap(), "b");
        assert_eq!(answer("\n", &two).unwrap(), "a");
        for wrong in ["0", "3", "c", "-1"] {
            assert_eq!(answer(wrong, &two).unwrap_err(), "A number from 1 to 2: ");
        }
        let free = choices(&[]);
        assert_eq!(answer(" 9.9.9.9 ", &free).unwrap(), "9.9.9.9");
        assert!(answer("", &free).is_err());
    }

    #[test]
    fn a_question_names_the_variable_and_numbers_the_choices() {
        let text = prompt("OPENSTACK_IMAGE_NAME", &choices(&["a", "b"]));
        assert_eq!(
            text,
            "\nWhich image? there are several (OPENSTACK_IMAGE_NAME)\n   1  a  about it\n   2  b  about it\nNumber or value [1]: "
        );
    }
}
