//! Parser for the [`Content`] of a file.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItem, Item, Meta, Pat, Stmt, TraitItem, UseTree};

use super::tokens::{self, TokensOf};
use super::{Absolute, Argument, Call, Content, Declared, Function, Import, Path, Written};

/// Reads a file of the module `module`.
pub(super) fn read(text: &str, module: Absolute) -> syn::Result<Content> {
    let file = syn::parse_file(text)?;
    let mut reader = Reader {
        module,
        content: Content::default(),
        closures: Vec::new(),
        words: HashSet::new(),
        tokens_of: TokensOf::Macro,
    };
    if is_for_tests(&file.attrs) {
        reader.content.tests.push(1..=text.lines().count());
    } else {
        reader.visit_file(&file);
    }
    // Otherwise the spans are kept until the end of the program.
    drop(file);
    proc_macro2::extra::invalidate_current_thread_spans();
    Ok(reader.content)
}

struct Reader {
    /// Module around the visited node.
    module: Absolute,
    content: Content,
    /// Variables with closures in the functions around the node, each with first line and length.
    closures: Vec<HashMap<String, (usize, usize)>>,
    /// Paths of one word already noted; most names are such paths.
    words: HashSet<(Absolute, String)>,
    /// Owner of the visited tokens.
    tokens_of: TokensOf,
}

/// Attributes of a node of one of these variants.
macro_rules! attributes {
    ($node:expr, $kind:ident: $($variant:ident)+) => {
        match $node {
            $($kind::$variant(it) => it.attrs.as_slice(),)+
            _ => &[],
        }
    };
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[Attribute] = attributes!(item, Item: Const Enum ExternCrate Fn ForeignMod Impl Macro Mod Static
            Struct Trait TraitAlias Type Union Use);
        if is_for_tests(attributes) {
            self.note_tests(item);
            if let Item::Mod(module) = item {
                self.declare(module, true);
            }
            return;
        }
        match item {
            Item::Mod(module) => self.read_module(module),
            Item::Fn(function) => {
                self.note_function(&function.sig, &function.block);
                self.within_function(|reader| visit::visit_item(reader, item));
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = attributes!(item, ImplItem: Const Fn Type Macro);
        if is_for_tests(attributes) {
            return self.note_tests(item);
        }
        if let ImplItem::Fn(function) = item {
            self.note_function(&function.sig, &function.block);
        }
        self.within_function(|reader| visit::visit_impl_item(reader, item));
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        let attributes: &[Attribute] = attributes!(item, TraitItem: Const Fn Type Macro);
        if is_for_tests(attributes) {
            return self.note_tests(item);
        }
        if let TraitItem::Fn(function) = item
            && let Some(block) = &function.default
        {
            self.note_function(&function.sig, block);
        }
        self.within_function(|reader| visit::visit_trait_item(reader, item));
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let attributes: &[Attribute] = match statement {
            Stmt::Local(local) => &local.attrs,
            Stmt::Macro(call) => &call.attrs,
            Stmt::Expr(expression, _) => {
                attributes!(expression, Expr: Await Block Call ForLoop If Loop Macro Match
                MethodCall Return Struct Try Unsafe While)
            }
            Stmt::Item(_) => &[],
        };
        if is_for_tests(attributes) {
            self.note_tests(statement);
        } else {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        match is_for_tests(&field.attrs) {
            true => self.note_tests(field),
            false => visit::visit_field(self, field),
        }
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        match is_for_tests(&field.attrs) {
            true => self.note_tests(field),
            false => visit::visit_field_value(self, field),
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        match is_for_tests(&variant.attrs) {
            true => self.note_tests(variant),
            false => visit::visit_variant(self, variant),
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        match is_for_tests(&arm.attrs) {
            true => self.note_tests(arm),
            false => visit::visit_arm(self, arm),
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut prefix = Written {
            is_external: item.leading_colon.is_some(),
            segments: Vec::new(),
        };
        self.import(&item.tree, &mut prefix);
    }

    fn visit_item_extern_crate(&mut self, item: &'ast syn::ItemExternCrate) {
        let krate = Written {
            is_external: item.ident != "self",
            segments: vec![match item.ident == "self" {
                true => "crate".to_owned(),
                false => item.ident.to_string(),
            }],
        };
        let name = item.rename.as_ref().map_or(&item.ident, |(_, name)| name);
        self.note_path(item.ident.span().start().line, krate.clone(), false);
        self.note_import(Some(name.to_string()), krate);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if let Some(first) = path.segments.first() {
            self.note_path(first.ident.span().start().line, path.into(), false);
        }
        visit::visit_path(self, path);
    }

    /// `pub(in path)` restricts users of the item, and is no use of the path.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        self.tokens_of = TokensOf::Attribute;
        visit::visit_attribute(self, attribute);
        self.tokens_of = TokensOf::Macro;
    }

    fn visit_token_stream(&mut self, tokens: &'ast TokenStream) {
        for (line, path) in tokens::paths(tokens.clone(), self.tokens_of) {
            self.note_path(line, path, false);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if let Pat::Ident(name) = &local.pat
            && let Some(value) = &local.init
            && let Expr::Closure(closure) = &*value.expr
            && let Some(variables) = self.closures.last_mut()
        {
            variables.insert(name.ident.to_string(), extent(closure));
        }
        visit::visit_local(self, local);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Expr::Path(callee) = &*call.func
            && let Some(second) = call.args.iter().nth(1)
        {
            let call = Call {
                line: call.span().start().line,
                module: self.module.clone(),
                callee: (&callee.path).into(),
                second: self.argument(second),
            };
            self.content.calls.push(call);
        }
        visit::visit_expr_call(self, call);
    }
}

impl Reader {
    fn note_tests(&mut self, node: &impl Spanned) {
        self.content.tests.push(lines(node));
    }

    fn note_function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.span().start().line;
        self.content.functions.push(Function {
            module: self.module.clone(),
            name: signature.ident.to_string(),
            line: first,
            lines: block.span().end().line + 1 - first,
        });
    }

    fn within_function(&mut self, read: impl FnOnce(&mut Self)) {
        self.closures.push(HashMap::new());
        read(self);
        self.closures.pop();
    }

    fn declare(&mut self, module: &syn::ItemMod, is_test: bool) -> Absolute {
        let mut name = self.module.clone();
        name.push(module.ident.to_string());
        self.content.modules.push(Declared {
            line: module.ident.span().start().line,
            module: name.clone(),
            is_file: module.content.is_none(),
            is_test,
        });
        name
    }

    fn read_module(&mut self, module: &syn::ItemMod) {
        let name = self.declare(module, false);
        let around = std::mem::replace(&mut self.module, name);
        visit::visit_item_mod(self, module);
        self.module = around;
    }

    /// Reads the tree of a `use`; each leaf is a path.
    fn import(&mut self, tree: &UseTree, prefix: &mut Written) {
        match tree {
            UseTree::Path(path) => {
                prefix.segments.push(path.ident.to_string());
                self.import(&path.tree, prefix);
                prefix.segments.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, prefix);
                }
            }
            UseTree::Name(leaf) => self.import_leaf(&leaf.ident, None, prefix),
            UseTree::Rename(leaf) => self.import_leaf(&leaf.ident, Some(&leaf.rename), prefix),
            UseTree::Glob(glob) => {
                if !prefix.segments.is_empty() {
                    self.note_path(glob.span().start().line, prefix.clone(), true);
                    self.note_import(None, prefix.clone());
                }
            }
        }
    }

    fn import_leaf(&mut self, leaf: &syn::Ident, rename: Option<&syn::Ident>, prefix: &Written) {
        let mut path = prefix.clone();
        // `a::{self}` names `a`, but `self` alone the module.
        if leaf != "self" || path.segments.is_empty() {
            path.segments.push(leaf.to_string());
        }
        let last = path.segments.last().cloned();
        self.note_path(leaf.span().start().line, path.clone(), false);
        self.note_import(rename.map(ToString::to_string).or(last), path);
    }

    fn note_import(&mut self, name: Option<String>, path: Written) {
        self.content.imports.push(Import {
            module: self.module.clone(),
            name,
            path,
        });
    }

    /// Notes a path; a path of one word once in a module.
    fn note_path(&mut self, line: usize, path: Written, is_glob: bool) {
        if let [word] = path.segments.as_slice()
            && !self.words.insert((self.module.clone(), word.clone()))
        {
            return;
        }
        self.content.paths.push(Path {
            line,
            module: self.module.clone(),
            path,
            is_glob,
        });
    }

    fn argument(&self, argument: &Expr) -> Argument {
        match argument {
            Expr::Closure(closure) => {
                let (line, lines) = extent(closure);
                Argument::Closure { line, lines }
            }
            Expr::Path(path) => {
                let variables = self.closures.last();
                let name = path.path.get_ident().map(ToString::to_string);
                let closure = name.and_then(|name| variables?.get(&name));
                match closure {
                    Some((line, lines)) => Argument::Closure {
                        line: *line,
                        lines: *lines,
                    },
                    None => Argument::Path((&path.path).into()),
                }
            }
            _ => Argument::Other,
        }
    }
}

/// True for an item compiled for tests alone.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list
            .parse_args::<Meta>()
            .is_ok_and(|condition| implies_test(&condition)),
        _ => false,
    })
}

fn implies_test(condition: &Meta) -> bool {
    use syn::Token;
    use syn::punctuated::Punctuated;
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => list
            .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
            .is_ok_and(|all| all.iter().any(implies_test)),
        _ => false,
    }
}

impl From<&syn::Path> for Written {
    fn from(path: &syn::Path) -> Self {
        let segments = path.segments.iter();
        Self {
            is_external: path.leading_colon.is_some(),
            segments: segments.map(|segment| segment.ident.to_string()).collect(),
        }
    }
}

fn lines(node: &impl Spanned) -> RangeInclusive<usize> {
    let span = node.span();
    span.start().line..=span.end().line
}

/// First line and number of lines of a node.
fn extent(node: &impl Spanned) -> (usize, usize) {
    let lines = lines(node);
    (*lines.start(), lines.end() + 1 - lines.start())
}
