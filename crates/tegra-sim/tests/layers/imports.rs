//! Finds the paths that a source file names, in `use` and inside of code.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::str::FromStr;

/// One path as it is written. `use super::{a, b}` has two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// The modules inside of the file in which the path is.
    pub inside: Vec<String>,
    /// The names of the path, with `*` for all names of a module.
    pub path: Vec<String>,
    /// Whether the name is passed on (`pub use`) and not used.
    pub passed_on: bool,
}

/// What a file says about modules.
#[derive(Debug, Default)]
pub struct File {
    /// All paths of at least two names, except those in tests.
    pub imports: Vec<Import>,
    /// The modules that exist only for tests.
    pub test_modules: Vec<String>,
}

/// Reads a file.
pub fn read(text: &str) -> File {
    let mut file = File::default();
    let tokens = TokenStream::from_str(text).expect("a source file that compiles");
    file.walk(tokens, &[]);
    file
}

impl File {
    fn walk(&mut self, tokens: TokenStream, inside: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let (mut at, mut for_tests, mut passed_on) = (0, false, false);
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => {
                    for_tests |= is_test_attribute(&tokens, at, group);
                    self.walk(group.stream(), inside);
                    at += 1;
                }
                TokenTree::Ident(word) if word == "mod" => {
                    at = self.module(&tokens, at + 1, inside, std::mem::take(&mut for_tests));
                }
                TokenTree::Ident(word) if word == "use" => {
                    passed_on = at > 0 && is_visibility(&tokens[..at]);
                    at += 1;
                    if std::mem::take(&mut for_tests) {
                        at += tokens[at..].iter().take_while(|t| !is_punct(t, ';')).count();
                    }
                }
                TokenTree::Ident(_) if is_path(&tokens, at) => at = self.path(&tokens, at, &[], inside, passed_on),
                token => {
                    passed_on &= !is_punct(token, ';');
                    for_tests &= !is_punct(token, ';') && !is_item(token);
                    at += 1;
                }
            }
        }
    }

    /// Reads the name of a module after `mod`, and its body or a semicolon.
    fn module(&mut self, tokens: &[TokenTree], at: usize, inside: &[String], for_tests: bool) -> usize {
        let Some(TokenTree::Ident(name)) = tokens.get(at) else { return at };
        match tokens.get(at + 1) {
            Some(TokenTree::Group(body)) if !for_tests => {
                let inside: Vec<String> = inside.iter().cloned().chain([name.to_string()]).collect();
                self.walk(body.stream(), &inside);
            }
            Some(TokenTree::Group(_)) => {}
            _ if for_tests => self.test_modules.push(name.to_string()),
            _ => {}
        }
        at + 2
    }

    /// Reads a path that begins at `at`, and returns the place where it ends.
    fn path(
        &mut self,
        tokens: &[TokenTree],
        mut at: usize,
        begun: &[String],
        inside: &[String],
        passed_on: bool,
    ) -> usize {
        let mut path = begun.to_vec();
        while let Some(TokenTree::Ident(name)) = tokens.get(at) {
            path.push(name.to_string());
            at += 1;
            if !is_colons(tokens, at) {
                break;
            }
            at += 2;
        }
        match tokens.get(at) {
            Some(TokenTree::Group(tree)) if is_colons(tokens, at.wrapping_sub(2)) => {
                self.branches(tree, &path, inside, passed_on);
                return at + 1;
            }
            Some(TokenTree::Punct(star)) if star.as_char() == '*' && is_colons(tokens, at.wrapping_sub(2)) => {
                path.push("*".to_owned());
                at += 1;
            }
            _ => {}
        }
        self.imports.push(Import { inside: inside.to_vec(), path, passed_on });
        at
    }

    /// The branches of `path::{a, b::c}`.
    fn branches(&mut self, tree: &Group, path: &[String], inside: &[String], passed_on: bool) {
        if tree.delimiter() != Delimiter::Brace {
            return;
        }
        let tokens: Vec<TokenTree> = tree.stream().into_iter().collect();
        for branch in tokens.split(|t| is_punct(t, ',')).filter(|branch| !branch.is_empty()) {
            self.path(branch, 0, path, inside, passed_on);
        }
    }
}

/// Whether the group is that of `#[cfg(test)]`.
fn is_test_attribute(tokens: &[TokenTree], at: usize, group: &Group) -> bool {
    at > 0
        && is_punct(&tokens[at - 1], '#')
        && group.delimiter() == Delimiter::Bracket
        && group.stream().to_string().replace(' ', "") == "cfg(test)"
}

/// Whether the preceding tokens end with `pub` or `pub(…)`.
fn is_visibility(before: &[TokenTree]) -> bool {
    match before {
        [.., TokenTree::Ident(word)] => word == "pub",
        [.., TokenTree::Ident(word), TokenTree::Group(_)] => word == "pub",
        _ => false,
    }
}

/// Whether the word begins an item to which an attribute may belong.
fn is_item(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Ident(word) if ["fn", "struct", "enum", "impl", "const", "static", "type", "trait"]
        .contains(&word.to_string().as_str()))
}

fn is_punct(token: &TokenTree, c: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == c)
}

fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    tokens.get(at..at.wrapping_add(2)).is_some_and(|two| two.iter().all(|t| is_punct(t, ':')))
}

fn is_path(tokens: &[TokenTree], at: usize) -> bool {
    is_colons(tokens, at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        read(text).imports.iter().map(|import| [&import.inside[..], &import.path[..]].concat().join(" ")).collect()
    }

    #[test]
    fn a_tree_of_names_is_several_paths() {
        let found = paths("use super::{Kernel, files::{Object, self}}; use tegra_mm::*;");
        assert_eq!(found, ["super Kernel", "super files Object", "super files self", "tegra_mm *"]);
    }

    #[test]
    fn paths_in_code_and_in_macros_count() {
        let found = paths("fn f(a: &crate::tsg::Tsg) { g!(crate::space::PAGE); matches!(x, super::Kind::One { .. }) }");
        assert_eq!(found, ["crate tsg Tsg", "crate space PAGE", "super Kind One"]);
    }

    #[test]
    fn comments_and_texts_do_not() {
        assert!(paths("//! crate::a::b\n/* tegra_gpu::Gpu */ const A: &str = \"tegra_gpu::Gpu\";").is_empty());
    }

    #[test]
    fn tests_do_not() {
        let text = "use a::b; #[cfg(test)] mod tests { use tegrarm::c; } #[cfg(test)] use d::e; #[cfg(test)] mod testing; \
                    mod inner { use super::f; }";
        let file = read(text);
        assert_eq!(file.test_modules, ["testing"]);
        assert_eq!(paths(text), ["a b", "inner super f"]);
    }

    #[test]
    fn a_name_that_is_passed_on_is_known_as_such() {
        let passed = |text| read(text).imports.iter().map(|import| import.passed_on).collect::<Vec<_>>();
        assert_eq!(
            passed("pub use a::{b, c}; pub(crate) use d::e; use f::g; const X: u32 = h::i;"),
            [true, true, true, false, false]
        );
    }
}
