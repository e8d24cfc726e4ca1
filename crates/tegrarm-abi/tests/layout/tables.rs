//! The tables of `tests/data/abi`, read into common types.

use serde_json::Value;
use std::collections::BTreeMap;

/// A field of a C structure. Members of unions and nested structures are in the same list.
#[derive(Clone, Debug)]
pub struct Field {
    pub name: String,
    pub offset: usize,
    pub size: usize,
    pub ty: String,
}

#[derive(Clone, Debug)]
pub struct Struct {
    pub size: usize,
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug)]
pub struct IoctlRow {
    pub number: u32,
    pub magic: u8,
    pub size: usize,
    /// `struct NAME`, a scalar type, or empty.
    pub arg: String,
}

/// One JSON file with structures, ioctls and constants.
#[derive(Clone, Debug, Default)]
pub struct Table {
    pub structs: BTreeMap<String, Struct>,
    pub ioctls: BTreeMap<String, IoctlRow>,
    pub consts: BTreeMap<String, i128>,
}

/// A range of bits as the class header gives it. Arrays list every element.
pub type Ranges = Vec<(u16, u16)>;

#[derive(Clone, Debug, Default)]
pub struct Tables {
    pub r36: Table,
    pub r35: Table,
    pub r39: Table,
    pub rm: Table,
    pub extra: Table,
    pub extra_sources: Vec<(String, String)>,
    pub status: BTreeMap<String, i128>,
    pub methods: BTreeMap<String, i128>,
    pub qmd_values: BTreeMap<String, i128>,
    pub bits: BTreeMap<String, Ranges>,
}

impl Tables {
    pub fn load() -> Tables {
        let methods = json("gpu-methods");
        let extra = json("extra");
        let mut out = Tables {
            r36: table(&json("nvgpu-r36")),
            r35: table(&json("nvgpu-r35")),
            r39: table(&json("nvgpu-r39")),
            rm: table(&json("rm-570")),
            extra: table(&extra),
            extra_sources: sources(&extra),
            qmd_values: numbers(&methods["qmd_v03_00"]["values"]),
            ..Tables::default()
        };
        for (code, name) in object(&json("nv-status")["codes"]) {
            out.status.insert(name.as_str().expect("a name").into(), code.parse().expect("a number"));
        }
        for (class, values) in object(&methods["methods_and_values"]) {
            out.methods.extend(numbers(values).into_iter().map(|(name, v)| (format!("{class}_{name}"), v)));
        }
        for section in [&methods["fields"], &methods["qmd_v03_00"]["bits"]] {
            out.bits.extend(object(section).map(|(name, v)| (name.clone(), ranges(v))));
        }
        out
    }
}

fn json(stem: &str) -> Value {
    let path = format!("{}/tests/data/abi/{stem}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn object(v: &Value) -> impl Iterator<Item = (&String, &Value)> {
    v.as_object().expect("an object").iter()
}

fn table(v: &Value) -> Table {
    let section = |name: &str| v.get(name).cloned().unwrap_or_else(|| Value::Object(Default::default()));
    Table {
        structs: object(&section("structs")).map(|(n, s)| (n.clone(), structure(s))).collect(),
        ioctls: object(&section("ioctls")).map(|(n, i)| (n.clone(), ioctl_row(i))).collect(),
        consts: numbers(&section("constants")),
    }
}

fn structure(v: &Value) -> Struct {
    let mut fields = Vec::new();
    flatten(&v["fields"], "", &mut fields);
    Struct { size: number(&v["size"]) as usize, fields }
}

/// Members of an anonymous union or structure keep their own names. Members of a named one get its name as a prefix.
fn flatten(list: &Value, prefix: &str, out: &mut Vec<Field>) {
    for f in list.as_array().expect("a list of fields") {
        let own = f["name"].as_str().expect("a name");
        let name = format!("{prefix}{own}");
        if let Some(members) = f.get("members") {
            let inner = if own.is_empty() { prefix.to_string() } else { format!("{name}_") };
            flatten(members, &inner, out);
        } else {
            let (offset, size) = (number(&f["offset"]) as usize, number(&f["size"]) as usize);
            out.push(Field { name, offset, size, ty: f["type"].as_str().unwrap_or("").into() });
        }
    }
}

fn ioctl_row(v: &Value) -> IoctlRow {
    let hex = v["number"].as_str().expect("a number").trim_start_matches("0x").to_string();
    IoctlRow {
        number: u32::from_str_radix(&hex, 16).expect("hexadecimal"),
        magic: v["magic"].as_str().expect("a letter").as_bytes()[0],
        size: number(&v["size"]) as usize,
        arg: v["arg"].as_str().expect("a type").into(),
    }
}

/// A plain number, or `{"value": number, "source": …}` as in `extra.json`.
fn number(v: &Value) -> i128 {
    let v = v.get("value").unwrap_or(v);
    match (v.as_u64(), v.as_i64()) {
        (Some(u), _) => u.into(),
        (_, Some(i)) => i.into(),
        _ => panic!("not a number: {v}"),
    }
}

fn numbers(v: &Value) -> BTreeMap<String, i128> {
    object(v).map(|(name, v)| (name.clone(), number(v))).collect()
}

fn ranges(v: &Value) -> Ranges {
    let one = |r: &Value| (number(&r["msb"]) as u16, number(&r["lsb"]) as u16);
    match v.get("indexed") {
        Some(list) => list.as_array().expect("a list").iter().map(one).collect(),
        None => vec![one(v)],
    }
}

fn sources(v: &Value) -> Vec<(String, String)> {
    let text = |row: &Value| row["source"].as_str().unwrap_or("").to_string();
    object(&v["structs"]).chain(object(&v["constants"])).map(|(name, row)| (name.clone(), text(row))).collect()
}
