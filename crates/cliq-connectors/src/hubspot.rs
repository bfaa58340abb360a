//! HubSpot (CRM API, version 3).

use camino::Utf8Path;
use cliq_http::Request;
use serde_json::{Value, json};

use crate::api::{Api, RESULTS, keep, list, published, text};
use crate::service::{Intent, Service, no_action};
use crate::{ConnectorError, Context, Entry, LocalFile, Source, Target};

/// The connector, for one action.
pub(crate) struct HubSpot<'a>(pub(crate) &'a str);

/// Names of a record type: in URLs, its default properties, its type number, and the number of its association with notes.
struct Object {
    name: &'static str,
    path: &'static str,
    properties: &'static [&'static str],
    note_type: u32,
}

const OBJECTS: &[Object] = &[
    Object {
        name: "contacts",
        path: "contacts",
        properties: &["firstname", "lastname", "email", "phone", "company", "lifecyclestage"],
        note_type: 202,
    },
    Object {
        name: "companies",
        path: "companies",
        properties: &["name", "domain", "industry", "city", "country"],
        note_type: 190,
    },
    // Deals are known by their number, in the published description as well.
    Object {
        name: "deals",
        path: "0-3",
        properties: &["dealname", "dealstage", "pipeline", "amount", "closedate"],
        note_type: 214,
    },
    Object { name: "notes", path: "notes", properties: &["hs_note_body", "hs_timestamp"], note_type: 0 },
];

fn object(name: &str) -> Result<&'static Object, ConnectorError> {
    OBJECTS.iter().find(|object| object.name == name).ok_or_else(|| {
        ConnectorError::new(format!(
            "HubSpot has no {name:?} here: contacts, companies, deals and notes can be used"
        ))
    })
}

fn api(cx: &Context<'_>) -> Result<Api, ConnectorError> {
    let base = cx.setting("hubspot.base_url").unwrap_or_else(|| "https://api.hubapi.com".to_owned());
    let token = cx.required("hubspot.access_token", "HUBSPOT_ACCESS_TOKEN")?;
    let hint = "is `agents.hubspot.access_token` right, and does the private app have the scopes for this?";
    Ok(Api::new(cx, "HubSpot", &base, hint).with("authorization", format!("Bearer {token}")))
}

fn at(api: &Api, object: &Object, below: &[&str], query: &[(&str, &str)]) -> String {
    let mut parts = vec!["crm", "v3", "objects", object.path];
    parts.extend(below);
    api.at(&parts, query)
}

fn name_of(record: &Value) -> Option<String> {
    let property = |name: &str| text(record, &format!("/properties/{name}"));
    property("name").or_else(|| property("dealname")).or_else(|| {
        match (property("firstname"), property("lastname")) {
            (None, None) => property("email"),
            (first, last) => Some([first, last].into_iter().flatten().collect::<Vec<_>>().join(" ")),
        }
    })
}

impl Service for HubSpot<'_> {
    fn fetch(&self, cx: &Context<'_>, source: &Source, file: &Utf8Path) -> Result<Entry, ConnectorError> {
        let api = api(cx)?;
        let wanted = source.wanted()?;
        let properties_of = |object: &Object| {
            if source.properties.is_empty() {
                object.properties.join(",")
            } else {
                source.properties.join(",")
            }
        };
        let kind = match self.0 {
            "get_contact" => "contacts",
            "get_company" => "companies",
            "get_deal" => "deals",
            "search" => {
                let object = object(source.object.as_deref().unwrap_or("contacts"))?;
                let limit = source.limit.unwrap_or(RESULTS);
                let properties: Vec<String> = properties_of(object).split(',').map(str::to_owned).collect();
                let request = |after: Option<&str>| {
                    let mut query = json!({"query": wanted, "limit": limit.min(100), "properties": properties,
                        "filterGroups": [], "sorts": [], "after": "0"});
                    if let Some(after) = after {
                        query["after"] = after.into();
                    }
                    // A search changes nothing.
                    Request::post(at(&api, object, &["search"], &[]))
                        .json(&query)
                        .repeat(cliq_http::Repeat::Safe)
                };
                let (records, more) = api.pages(request(None), limit, |page| {
                    (
                        list(page, "/results"),
                        text(page, "/paging/next/after").map(|after| request(Some(&after))),
                    )
                })?;
                let brief: Vec<Value> =
                    records.iter().map(|record| json!({"id": record["id"], "url": text(record, "/url"), "name": name_of(record)})).collect();
                let entry = keep(cx, source, file, &Value::Array(records))?;
                return Ok(entry.with("count", brief.len()).with("more", more).with("records", brief));
            }
            other => return Err(no_action("hubspot", other)),
        };
        let object = object(kind)?;
        let properties = properties_of(object);
        let mut query = vec![("properties", properties.as_str())];
        if wanted.contains('@') {
            query.push(("idProperty", "email"));
        }
        let record = api.get(at(&api, object, &[wanted], &query)).map_err(|error| {
            if error.is_not_found() {
                return ConnectorError {
                    message: format!("HubSpot has no {wanted} among its {kind}"),
                    status: error.status,
                };
            }
            error
        })?;
        let entry = Entry { url: text(&record, "/url"), ..keep(cx, source, file, &record)? };
        Ok(entry
            .with("id", record["id"].clone())
            .with("properties", record["properties"].clone())
            .with("updated", text(&record, "/updatedAt")))
    }

    fn publish(
        &self,
        cx: &Context<'_>,
        target: &Target,
        file: &LocalFile,
        intent: &mut Intent<'_>,
    ) -> Result<Entry, ConnectorError> {
        let api = api(cx)?;
        let wanted = target.wanted()?;
        let said = file.text()?;
        match self.0 {
            "create_note" => {
                let (kind, id) = wanted.split_once('/').unwrap_or(("contacts", wanted));
                let association = object(kind)?;
                if association.note_type == 0 {
                    return Err(ConnectorError::new(
                        "a note is on a contact, a company or a deal: contacts/ID, companies/ID, deals/ID",
                    ));
                }
                let notes = object("notes")?;
                let entry = |id: Value| published(cx, target, file, None).with("id", id);
                // The time of a note is its mark: an interrupted try is found by it.
                if let Some(time) = intent.earlier("time") {
                    let filter = json!({"filterGroups": [{"filters": [{"propertyName": "hs_timestamp", "operator": "EQ", "value": time}]}],
                        "properties": notes.properties, "limit": 100, "after": "0", "sorts": []});
                    let request = Request::post(at(&api, notes, &["search"], &[]))
                        .json(&filter)
                        .repeat(cliq_http::Repeat::Safe);
                    let found = list(&api.call(request)?, "/results");
                    let same = found.into_iter().find(|note| {
                        text(note, "/properties/hs_note_body").as_deref() == Some(said.as_str())
                    });
                    if let Some(note) = same {
                        return Ok(entry(note["id"].clone()));
                    }
                }
                let time = intent
                    .earlier("time")
                    .map_or_else(|| cliq_fs::now().unix_millis().to_string(), str::to_owned);
                intent.note(json!({"time": time}))?;
                let note = json!({
                    "properties": {"hs_note_body": said, "hs_timestamp": time},
                    "associations": [{"to": {"id": id}, "types": [{"associationCategory": "HUBSPOT_DEFINED", "associationTypeId": association.note_type}]}],
                });
                let made = api.call(Request::post(at(&api, notes, &[], &[])).json(&note))?;
                Ok(entry(made["id"].clone()))
            }
            "update_deal_stage" => {
                intent.note(json!({"stage": said}))?;
                let change = json!({"properties": {"dealstage": said}});
                // Setting the same stage twice is the same as once.
                let request = Request::patch(at(&api, object("deals")?, &[wanted], &[]))
                    .json(&change)
                    .repeat(cliq_http::Repeat::Safe);
                let deal = api.call(request).map_err(|error| {
                    if error.is_not_found() {
                        return ConnectorError {
                            message: format!("HubSpot has no deal {wanted}"),
                            status: error.status,
                        };
                    }
                    error
                })?;
                let entry = published(cx, target, file, text(&deal, "/url"));
                Ok(entry.with("id", deal["id"].clone()).with("stage", said))
            }
            other => Err(no_action("hubspot", other)),
        }
    }

    fn test(&self, cx: &Context<'_>) -> Result<String, ConnectorError> {
        let api = api(cx)?;
        api.get(at(&api, object("contacts")?, &[], &[("limit", "1")]))?;
        Ok("the token reads contacts".to_owned())
    }
}
