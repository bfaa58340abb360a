//! Registered projects.

use cliq_model::Instance;

use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::rows::instance;
use crate::statement::arguments;

pub(crate) async fn add(connection: &mut Connection, new: &Instance) -> Result<Instance, DatabaseError> {
    let mut transaction = connection.begin().await?;
    // Another project may have the same six characters: the next free name is taken.
    let sql = "INSERT INTO instances (id, path, registered_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    let find = "SELECT * FROM instances WHERE path = $1";
    let mut id = new.id.clone();
    for number in 2.. {
        transaction.run(sql, arguments![&id, new.path.as_str(), new.registered_at]).await?;
        if let Some(row) = transaction.run(find, arguments![new.path.as_str()]).await?.rows.first() {
            let found = instance(row)?;
            transaction.commit().await?;
            return Ok(found);
        }
        id = format!("{}-{number}", new.id);
    }
    unreachable!("names do not run out")
}

pub(crate) async fn list(connection: &mut Connection) -> Result<Vec<Instance>, DatabaseError> {
    let sql = "SELECT * FROM instances ORDER BY path";
    connection.run(sql, arguments![]).await?.rows.iter().map(instance).collect()
}

pub(crate) async fn find(connection: &mut Connection, id: &str) -> Result<Option<Instance>, DatabaseError> {
    let sql = "SELECT * FROM instances WHERE id = $1";
    connection.run(sql, arguments![id]).await?.rows.first().map(instance).transpose()
}

pub(crate) async fn remove(connection: &mut Connection, id: &str) -> Result<bool, DatabaseError> {
    let sql = "DELETE FROM instances WHERE id = $1";
    Ok(connection.run(sql, arguments![id]).await?.changed == 1)
}
