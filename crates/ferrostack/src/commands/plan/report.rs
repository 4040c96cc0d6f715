//! Plan as a table or JSON. Pure.

use serde_json::{Value, json};

use super::forecast::{Forecast, Room};
use crate::cli::Output;

/// Plan in the requested form.
pub(super) fn text(
    form: Output,
    forecasts: &[Forecast],
    obstacles: &[String],
) -> anyhow::Result<String> {
    match form {
        Output::Json => {
            let clusters: Vec<Value> = forecasts.iter().map(document).collect();
            let document = json!({ "clusters": clusters, "obstacles": obstacles });
            Ok(terminal::json(&document)?)
        }
        Output::Text => {
            let clusters = forecasts.iter().map(table);
            let obstacles = obstacles.iter().map(|it| format!("\n{it}\n"));
            Ok(clusters.chain(obstacles).collect())
        }
    }
}

fn document(forecast: &Forecast) -> Value {
    let changes: Vec<Value> = forecast
        .changes
        .iter()
        .map(|change| {
            let mut value = json!({
                "action": change.action.as_str(),
                "object": change.object,
                "step": change.step,
            });
            if !change.name.is_empty() {
                value["name"] = json!(change.name);
            }
            value
        })
        .collect();
    let quota: Vec<Value> = forecast
        .room
        .iter()
        .map(|room| {
            json!({
                "resource": room.resource,
                "needed": room.needed,
                "left": room.left,
                "enough": !room.is_short(),
            })
        })
        .collect();
    json!({
        "name": forecast.cluster,
        "changes": changes,
        "waits": forecast.waits,
        "quota": quota,
        "problems": forecast.problems,
    })
}

fn table(forecast: &Forecast) -> String {
    let name = &forecast.cluster;
    let mut text = match forecast.changes.is_empty() && forecast.problems.is_empty() {
        true => format!("cluster {name}: nothing would be written\n"),
        false => format!("cluster {name}:\n"),
    };
    if !forecast.changes.is_empty() {
        let mut rows = vec![["ACTION", "FOR", "STEP", "NAME"].map(str::to_owned)];
        rows.extend(forecast.changes.iter().map(|it| {
            let row = [it.action.as_str(), &it.object, &it.step, &it.name];
            terminal::cells(row.map(str::to_owned))
        }));
        text.push_str(&terminal::align(&rows));
    }
    for wait in &forecast.waits {
        text.push_str(&format!("\n{wait}\n"));
    }
    if !forecast.room.is_empty() {
        let mut rows = vec![["QUOTA", "NEEDED", "LEFT", ""].map(str::to_owned)];
        rows.extend(forecast.room.iter().map(of_room));
        text.push('\n');
        text.push_str(&terminal::align(&rows));
    }
    for problem in &forecast.problems {
        text.push_str(&format!("\ncannot be built: {problem}\n"));
    }
    text
}

fn of_room(room: &Room) -> [String; 4] {
    let left = room
        .left
        .map_or_else(|| "no limit".to_owned(), |it| it.to_string());
    let verdict = if room.is_short() { "not enough" } else { "" };
    terminal::cells([
        room.resource.clone(),
        room.needed.to_string(),
        left,
        verdict.to_owned(),
    ])
}
