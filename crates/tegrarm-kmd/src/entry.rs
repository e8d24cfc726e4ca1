//! One line of a recording, which is a JSON object for one call.
//!
//! A line has the exact bytes, which a replay uses. Beside them it has the important numbers in decoded form, for
//! readers: `{"seq":7,"call":"ioctl","on":"as#1","node":"as","request":"0xc0284107","name":"…MAP_BUFFER_EX",
//! "fields":{"offset":["0","0xff00000000"],…},"in":{…},"out":{…},"ret":0}`.

use crate::describe::{self, hex, unhex};
use crate::descriptors;
use crate::image::{Buffer, Fds, Image};
use crate::written::{Run, Written};
use crate::{Errno, Node, Placement, Prot};
use serde_json::{Map, Value, json};

/// A descriptor that a call made: its label, and the size of the file behind it. The size is needed because a stand-in
/// must be mappable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub label: String,
    pub size: u64,
}

/// One recorded call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    Open {
        path: String,
        result: Result<Made, Errno>,
    },
    Ioctl(Box<Ioctl>),
    Mmap {
        on: String,
        len: usize,
        prot: Prot,
        offset: u64,
        place: Placement,
        result: Result<(), Errno>,
    },
    Close {
        on: String,
    },
    ReadText {
        path: String,
        result: Result<String, Errno>,
    },
    WriteText {
        path: String,
        text: String,
        result: Result<(), Errno>,
    },
    /// Not a call: what the GPU wrote.
    Memory(Written),
}

/// The key of [`Call::Memory`].
pub(crate) const MEMORY: &str = "memory";

/// A recorded ioctl.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ioctl {
    pub on: String,
    pub node: Node,
    pub request: u32,
    pub before: Image,
    pub after: Image,
    /// Every descriptor that the call made, with sizes.
    pub made: Vec<Made>,
    pub result: Result<i32, Errno>,
    /// The reason why the call cannot be replayed, if it cannot.
    pub opaque: bool,
}

impl Call {
    /// What it is, for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Call::Open { path, .. } => format!("open {path}"),
            Call::Ioctl(i) => describe::name(i.node, i.request).into_owned(),
            Call::Mmap { len, offset, .. } => format!("mmap of {len:#x} bytes at {offset:#x}"),
            Call::Close { .. } => "close".into(),
            Call::ReadText { path, .. } => format!("read of {path}"),
            Call::WriteText { path, .. } => format!("write to {path}"),
            Call::Memory(_) => "memory".into(),
        }
    }

    /// The key under which a replay looks the call up: the descriptor's label, or the path.
    pub(crate) fn key(&self) -> String {
        match self {
            Call::Open { path, .. } => format!("open {path}"),
            Call::Ioctl(i) => i.on.clone(),
            Call::Mmap { on, .. } | Call::Close { on } => on.clone(),
            Call::ReadText { path, .. } => format!("read {path}"),
            Call::WriteText { path, .. } => format!("write {path}"),
            Call::Memory(_) => MEMORY.to_owned(),
        }
    }

    /// The line, without its newline.
    pub(crate) fn to_line(&self, seq: u64, rm: &str) -> String {
        let mut line = Line::new();
        line.put("seq", seq.into());
        if !rm.is_empty() {
            line.put("rm", rm.into());
        }
        match self {
            Call::Open { path, result } => {
                line.put("call", "open".into()).put("path", path.as_str().into());
                line.result(result, made);
            }
            Call::Ioctl(i) => i.put(&mut line),
            Call::Mmap { on, len, prot, offset, place, result } => {
                let (place, at) = placement(*place);
                line.put("call", "mmap".into()).put("on", on.as_str().into()).put("len", (*len).into());
                line.put("prot", if *prot == Prot::Read { "r" } else { "rw" }.into()).put("offset", (*offset).into());
                line.put("place", place.into()).put("at", format!("{at:#x}").into());
                line.result(result, |()| Value::Null);
            }
            Call::Close { on } => {
                line.put("call", "close".into()).put("on", on.as_str().into());
            }
            Call::ReadText { path, result } => {
                line.put("call", "read_text".into()).put("path", path.as_str().into());
                line.result(result, |text| text.as_str().into());
            }
            Call::WriteText { path, text, result } => {
                line.put("call", "write_text".into()).put("path", path.as_str().into());
                line.put("text", text.as_str().into());
                line.result(result, |()| Value::Null);
            }
            Call::Memory(written) => {
                line.put("call", MEMORY.into()).put("runs", written.runs.iter().map(run).collect());
                if written.cut {
                    line.put("cut", true.into());
                }
            }
        }
        line.close()
    }

    /// Reads a line. The result is `None` if the line is not a recorded call.
    pub(crate) fn from_line(line: &str) -> Option<Call> {
        let v: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| v[key].as_str().map(str::to_owned);
        Some(match v["call"].as_str()? {
            "open" => Call::Open { path: text("path")?, result: result(&v, to_made)? },
            "ioctl" => Call::Ioctl(Box::new(Ioctl::from_value(&v)?)),
            "mmap" => Call::Mmap {
                on: text("on")?,
                len: v["len"].as_u64()? as usize,
                prot: if v["prot"] == "r" { Prot::Read } else { Prot::ReadWrite },
                offset: v["offset"].as_u64()?,
                place: to_placement(v["place"].as_str()?, &text("at")?)?,
                result: result(&v, |_| Some(()))?,
            },
            "close" => Call::Close { on: text("on")? },
            "read_text" => {
                Call::ReadText { path: text("path")?, result: result(&v, |t| Some(t.as_str()?.to_owned()))? }
            }
            "write_text" => {
                Call::WriteText { path: text("path")?, text: text("text")?, result: result(&v, |_| Some(()))? }
            }
            MEMORY => {
                let runs = v["runs"].as_array()?.iter().map(to_run).collect::<Option<_>>()?;
                Call::Memory(Written { runs, cut: v["cut"] == true })
            }
            _ => return None,
        })
    }
}

fn run(run: &Run) -> Value {
    json!({"on": run.on, "offset": run.offset, "bytes": hex(&run.bytes)})
}

fn to_run(v: &Value) -> Option<Run> {
    let (on, bytes) = (v["on"].as_str()?.to_owned(), unhex(v["bytes"].as_str()?)?);
    Some(Run { on, offset: v["offset"].as_u64()?, bytes })
}

impl Ioctl {
    fn put(&self, line: &mut Line) {
        line.put("call", "ioctl".into()).put("on", self.on.as_str().into());
        line.put("node", descriptors::kind(self.node).into());
        line.put("request", format!("{:#010x}", self.request).into());
        line.put("name", describe::name(self.node, self.request).into());
        line.put("fields", self.fields());
        line.put("in", image(&self.before));
        if self.after != self.before {
            line.put("out", image(&self.after));
        }
        if !self.made.is_empty() {
            line.put("made", self.made.iter().map(made).collect());
        }
        if self.opaque {
            line.put("opaque", true.into());
        }
        line.result(&self.result, |v| (*v).into());
    }

    /// The fields for readers, with the values before and after the call where they differ.
    fn fields(&self) -> Value {
        let of = |image: &Image| describe::fields(self.node, self.request, &image.bytes);
        let say = |image: &Image, f: &describe::Field| -> String {
            image.fds.get(&f.offset).cloned().unwrap_or_else(|| f.value.to_string())
        };
        let pairs = of(&self.before).into_iter().zip(of(&self.after));
        let mut out = Map::new();
        for (before, after) in pairs {
            let (a, b) = (say(&self.before, &before), say(&self.after, &after));
            out.insert(before.name.to_string(), if a == b { json!(a) } else { json!([a, b]) });
        }
        Value::Object(out)
    }

    fn from_value(v: &Value) -> Option<Ioctl> {
        let before = to_image(&v["in"])?;
        let after = if v["out"].is_null() { before.clone() } else { to_image(&v["out"])? };
        Some(Ioctl {
            on: v["on"].as_str()?.to_owned(),
            node: NODES.into_iter().find(|n| v["node"] == descriptors::kind(*n))?,
            request: u32::from_str_radix(v["request"].as_str()?.strip_prefix("0x")?, 16).ok()?,
            before,
            after,
            made: v["made"].as_array().map_or(Some(Vec::new()), |list| list.iter().map(to_made).collect())?,
            // What a call returns without an error is not negative.
            result: result(v, |r| i32::try_from(r.as_u64()?).ok())?,
            opaque: v["opaque"] == true,
        })
    }
}

const NODES: [Node; 14] = [
    Node::Nvmap,
    Node::Ctrl,
    Node::As,
    Node::Tsg,
    Node::Channel,
    Node::Debugger,
    Node::Profiler,
    Node::Sched,
    Node::Nvsched,
    Node::Ctxsw,
    Node::CtrlFifo,
    Node::SyncFile,
    Node::Host1x,
    Node::Dmabuf,
];

/// A JSON object whose keys are in the best order for readers.
struct Line(String);

impl Line {
    fn new() -> Line {
        Line("{".into())
    }

    fn put(&mut self, key: &str, value: Value) -> &mut Line {
        let comma = if self.0.len() > 1 { "," } else { "" };
        self.0.push_str(&format!("{comma}\"{key}\":{value}"));
        self
    }

    fn result<T>(&mut self, result: &Result<T, Errno>, ok: impl Fn(&T) -> Value) {
        match result {
            Ok(v) => self.put("ret", ok(v)),
            Err(e) => self.put("err", format!("{e:?}").into()),
        };
    }

    fn close(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

fn result<T>(v: &Value, ok: impl Fn(&Value) -> Option<T>) -> Option<Result<T, Errno>> {
    match v["err"].as_str() {
        Some(name) => errno(name).map(Err),
        None => ok(&v["ret"]).map(Ok),
    }
}

fn errno(name: &str) -> Option<Errno> {
    (1..=133).map(Errno::from_raw).find(|e| format!("{e:?}") == name)
}

fn made(m: &Made) -> Value {
    json!({"fd": m.label, "size": m.size})
}

fn to_made(v: &Value) -> Option<Made> {
    Some(Made { label: v["fd"].as_str()?.to_owned(), size: v["size"].as_u64()? })
}

fn fds(fds: &Fds) -> Value {
    fds.iter().map(|(at, label)| (at.to_string(), Value::from(label.as_str()))).collect::<Map<_, _>>().into()
}

fn to_fds(v: &Value) -> Option<Fds> {
    let Some(map) = v.as_object() else { return Some(Fds::new()) };
    map.iter().map(|(at, label)| Some((at.parse().ok()?, label.as_str()?.to_owned()))).collect()
}

fn image(i: &Image) -> Value {
    if let Some(value) = i.value {
        return json!({ "value": value });
    }
    let mut out = Map::from_iter([("bytes".to_owned(), Value::from(hex(&i.bytes)))]);
    if !i.fds.is_empty() {
        out.insert("fds".into(), fds(&i.fds));
    }
    if !i.buffers.is_empty() {
        let one = |b: &Buffer| match b.fds.is_empty() {
            true => json!({ "bytes": hex(&b.bytes) }),
            false => json!({ "bytes": hex(&b.bytes), "fds": fds(&b.fds) }),
        };
        let all: Map<_, _> = i.buffers.iter().map(|(at, b)| (at.to_string(), one(b))).collect();
        out.insert("memory".into(), all.into());
    }
    out.into()
}

fn to_image(v: &Value) -> Option<Image> {
    if let Some(value) = v["value"].as_u64() {
        return Some(Image { value: Some(value), ..Image::default() });
    }
    let bytes = |v: &Value| unhex(v["bytes"].as_str()?);
    let mut out = Image { bytes: bytes(v)?, fds: to_fds(&v["fds"])?, ..Image::default() };
    for (at, b) in v["memory"].as_object().into_iter().flatten() {
        out.buffers.insert(at.parse().ok()?, Buffer { bytes: bytes(b)?, fds: to_fds(&b["fds"])? });
    }
    Some(out)
}

fn placement(p: Placement) -> (&'static str, usize) {
    match p {
        Placement::Anywhere => ("anywhere", 0),
        Placement::ExactlyIfFree(at) => ("if-free", at),
        Placement::Replace(at) => ("replace", at),
    }
}

fn to_placement(name: &str, at: &str) -> Option<Placement> {
    let at = usize::from_str_radix(at.strip_prefix("0x")?, 16).ok()?;
    match name {
        "anywhere" => Some(Placement::Anywhere),
        "if-free" => Some(Placement::ExactlyIfFree(at)),
        "replace" => Some(Placement::Replace(at)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survives(call: Call) {
        let line = call.to_line(3, "");
        assert_eq!(Call::from_line(&line).as_ref(), Some(&call), "{line}");
        assert!(line.starts_with("{\"seq\":3,\"call\":"), "{line}");
    }

    #[test]
    fn every_call_survives_its_line() {
        let made = Made { label: "ctrl#1".into(), size: 4096 };
        survives(Call::Open { path: "/dev/nvmap".into(), result: Err(Errno::ENOENT) });
        survives(Call::Open { path: "/dev/nvgpu/igpu0/ctrl".into(), result: Ok(made.clone()) });
        survives(Call::Close { on: "ctrl#1".into() });
        survives(Call::ReadText { path: "/proc/meminfo".into(), result: Ok("MemTotal: 1 \"kB\"\n".into()) });
        survives(Call::WriteText { path: "x".into(), text: "1".into(), result: Err(Errno::EACCES) });
        let run = Run { on: "dmabuf#1".into(), offset: 64, bytes: vec![1, 0, 255] };
        survives(Call::Memory(Written { runs: vec![run.clone(), run], cut: true }));
        survives(Call::Memory(Written::default()));
        for place in [Placement::Anywhere, Placement::ExactlyIfFree(0x1000), Placement::Replace(0x2000)] {
            let (on, result) = ("dmabuf#2".to_owned(), Ok(()));
            survives(Call::Mmap { on, len: 8192, prot: Prot::Read, offset: 4096, place, result });
        }
        let buffer = Buffer { bytes: vec![1, 2], fds: Fds::from([(0, "dmabuf#1".to_owned())]) };
        let before = Image { bytes: vec![0; 8], fds: Fds::from([(4, "x#1".into())]), ..Image::default() };
        let after = Image { buffers: [(0, buffer)].into(), ..before.clone() };
        for (after, result) in [(after, Ok(0)), (before.clone(), Err(Errno::EINVAL))] {
            survives(Call::Ioctl(Box::new(Ioctl {
                on: "as#1".into(),
                node: Node::As,
                request: 0x4108_4105,
                before: before.clone(),
                after,
                made: vec![made.clone()],
                result,
                opaque: false,
            })));
        }
        let value = Image { value: Some(7), ..Image::default() };
        survives(Call::Ioctl(Box::new(Ioctl {
            on: "nvmap#1".into(),
            node: Node::Nvmap,
            request: 0x4e04,
            before: value.clone(),
            after: value,
            made: Vec::new(),
            result: Ok(0),
            opaque: true,
        })));
    }

    #[test]
    fn foreign_lines_are_refused() {
        for line in [
            "",
            "{}",
            "{\"call\":\"fork\"}",
            "{\"call\":\"close\"}",
            "{\"call\":\"open\",\"path\":\"x\",\"err\":\"EODD\"}",
        ] {
            assert_eq!(Call::from_line(line), None, "{line}");
        }
    }
}
