import { type DeclaredFields, differenceBetween } from './composition/same-resource.ts';
import { parameterPrefix, together } from './conditions.ts';
import { type Contender, canBothApply } from './conflicts.ts';
import type { Conditions, DeclaredResource, ModuleDocument, ResourceDeclaration } from './document.ts';
import { furtherFiles, isPartOfFile, keyOfFile, wholeFiles, whyNotBoth, whyNotTwice } from './file-parts.ts';
import { declareVersion } from './kinds/packages.ts';
import { identify, kinds } from './kinds.ts';
import { quoted } from './nearest.ts';
import type { Path } from './source/tree.ts';

/** A resource that conflicts with a resource of another module if both modules apply to the same agent. */
export interface ModuleConflict {
  /** Index of the module. */
  readonly module: number;
  /** Path of the resource in the module. */
  readonly path: Path;
  readonly message: string;
  /** Whether expressions determine whether the resources differ. */
  readonly uncertain: boolean;
}

/** A variant of a resource that another module may declare too. */
interface Entry extends Contender {
  readonly label: string;
  readonly module: number;
  readonly declaration: ResourceDeclaration;
  readonly declared: DeclaredResource;
  readonly path: Path;
}

// Limited, because the comparison is quadratic in the number of resources with the same identity.
const maximumSteps = 200_000;

/**
 * Finds resources in different modules that conflict for some agent, without evaluating expressions. Modules that no
 * agent can have together do not conflict, and neither do declarations that can be merged.
 * @param modules parsed without errors; the conflict is reported for the later of two modules
 */
export function conflictsBetween(modules: readonly ModuleDocument[]): ModuleConflict[] {
  const entries = modules.flatMap((module, index) => entriesOf(module, index));
  const clausesOf = pairedClauses(modules);
  const conflicts: ModuleConflict[] = [];
  let steps = 0;
  const compare = (later: Entry, earlier: readonly Entry[], conflict: (one: Entry) => ModuleConflict | null): void => {
    for (const one of earlier) {
      if (one.module === later.module) continue;
      if (++steps > maximumSteps) return;
      const clauses = clausesOf(one.module, later.module);
      const found = clauses.length > 0 && canBothApply(one, later, clauses) ? conflict(one) : null;
      if (found === null) continue;
      conflicts.push(found);
      return;
    }
  };
  const byKey = new Map<string, Entry[]>();
  const wholes = new Map<string, Entry[]>();
  const files = new Map(entries.flatMap(filesOf).map((file): [string, string] => [keyOfFile(file), file]));
  const declarers = new Map<string, Entry[]>();
  for (const entry of entries) {
    const earlier = byKey.get(entry.key) ?? [];
    compare(entry, earlier, (one) => different(one, entry, modules));
    byKey.set(entry.key, [...earlier, entry]);
    for (const file of wholesOf(entry)) wholes.set(file, [...(wholes.get(file) ?? []), entry]);
    for (const key of new Set([entry.key, ...filesOf(entry).map(keyOfFile)])) {
      const file = files.get(key);
      if (file === undefined) continue;
      const others = declarers.get(key) ?? [];
      declarers.set(key, others);
      compare(
        entry,
        others.filter((one) => one.key !== entry.key),
        (one) => ({
          module: entry.module,
          path: entry.path,
          message: `${entry.label} and ${one.label} in ${locationOf(one, modules)} ${whyNotTwice(file)}`,
          uncertain: false,
        }),
      );
      others.push(entry);
    }
  }
  for (const entry of entries) {
    const path = pathOf(entry);
    if (path === null || !isPartOfFile(entry.declared)) continue;
    compare(entry, wholes.get(path) ?? [], (whole) => ({
      module: entry.module,
      path: entry.path,
      message: `${entry.declared.type} ${quoted(path)} is a part of a file, and ${locationOf(whole, modules)} ${whyNotBoth(whole.declared.body)}`,
      uncertain: false,
    }));
  }
  return conflicts;
}

/** Returns a function that combines the `supports` of two modules into the agents that match both. */
function pairedClauses(modules: readonly ModuleDocument[]): (one: number, other: number) => readonly Conditions[] {
  const known = new Map<string, readonly Conditions[]>();
  return (one, other) => {
    const key = `${one} ${other}`;
    const clauses =
      known.get(key) ??
      (modules[one]?.supports ?? [])
        .flatMap((first) => (modules[other]?.supports ?? []).map((second) => together(first, second)))
        .filter((clause) => clause !== undefined);
    known.set(key, clauses);
    return clauses;
  };
}

function entriesOf({ resources }: ModuleDocument, module: number): Entry[] {
  return resources.flatMap((declaration, index) => {
    // The elements of a list are known only for a specific agent.
    if (declaration.for_each !== null) return [];
    return declaration.variants.flatMap((variant, position): Entry[] => {
      const { resource: declared } = variant;
      if (declared === null) return [];
      const identity = identityOf(declaration, declared);
      const own = inModule(variant.when, module);
      const when = together(inModule(declaration.when, module), own);
      if (identity === null || when === undefined) return [];
      const owner: Path = ['resources', index, ...(declaration.universal ? [] : ['variants', position])];
      return [
        {
          module,
          declaration,
          declared,
          path: [...owner, 'resource', declared.type],
          resource: module * 1_000_000 + index,
          ...identity,
          when,
          variant: own,
          rivals: declaration.variants
            .filter((_, other) => other !== position)
            .map((rival) => inModule(rival.when, module)),
        },
      ];
    });
  });
}

/** Distinguishes parameters of different modules, which may have the same name. */
const inModule = (conditions: Conditions, module: number): Conditions =>
  Object.fromEntries(
    Object.entries(conditions).map(([key, set]) => [
      key.startsWith(parameterPrefix) ? `${key} of ${module}` : key,
      set,
    ]),
  );

/**
 * Returns the identity as declared; null if it is unknown. Equal expressions result in equal values, except for
 * parameters.
 */
function identityOf({ id }: ResourceDeclaration, { type, body }: DeclaredResource): Identity | null {
  const kind = kinds[type];
  const identified: Readonly<Record<string, unknown>> =
    type === 'script' ? { ...body, manages: body.manages ?? id } : body;
  const values = kind.identifiedBy(identified).map((name) => identified[name]);
  if (!values.every((value) => typeof value === 'string') || values.some(usesParameter)) return null;
  const { key, identity } = identify(type, identified);
  const isKnown = !values.some((value) => value.includes(opening));
  return { key: isKnown ? key : JSON.stringify([kind.space, values]), label: `${type} ${quoted(identity)}` };
}

interface Identity {
  readonly key: string;
  readonly label: string;
}

const opening = '${{';
/** Parameters have a separate value in each module. */
const usesParameter = (text: string): boolean => /\$\{\{[^}]*\bparam\./.test(text);

const wholesOf = ({ declared: { type, body, template } }: Entry): string[] =>
  wholeFiles({ type, body: { ...body, template } });

/**
 * Returns the files that an entry declares besides its main object, and whose paths do not depend on the module's
 * parameters.
 */
const filesOf = ({ declared }: Entry): string[] => furtherFiles(declared).filter((file) => !usesParameter(file));

const pathOf = ({ declared }: Entry): string | null =>
  typeof declared.body.path === 'string' ? declared.body.path : null;

/** Returns the conflict between two resources with the same identity; null if their declarations can be merged. */
function different(one: Entry, other: Entry, modules: readonly ModuleDocument[]): ModuleConflict | null {
  const [first, second] = [one, other].map((entry) => declaredFields(entry, modules)) as [
    DeclaredFields,
    DeclaredFields,
  ];
  const difference = differenceBetween(first, second);
  if (difference === null) return null;
  const { fields, reason } = difference;
  const compared =
    fields.length > 0 ? [first, second].map((each) => fields.map((name) => each.fields[name])) : [first, second];
  return {
    module: other.module,
    path: other.path,
    message: `${other.label} is declared differently in ${locationOf(one, modules)}: ${reason}; keep one of them, or make them agree`,
    uncertain: JSON.stringify(compared).includes(opening),
  };
}

/**
 * Returns the fields as in the desired state, with the content of a template in `content` and without the default of
 * `ensure`.
 */
function declaredFields({ declared, declaration, module }: Entry, modules: readonly ModuleDocument[]): DeclaredFields {
  const { type, body, template } = declared;
  const { ensure, ...rest } = body;
  const fields: Record<string, unknown> = ensure === undefined || ensure === 'present' ? rest : { ...rest, ensure };
  declareVersion(type, fields, modules[module]?.packages ?? 'any');
  if (template !== null) {
    const contents = modules[module]?.templates.filter(({ id }) => id === template) ?? [];
    fields.content =
      contents.length > 1 ? contents.map(({ when, content }) => [when, content]) : (contents[0]?.content ?? null);
  }
  return { type, fields, onlyIf: declaration.only_if };
}

function locationOf({ module, declaration, path }: Entry, modules: readonly ModuleDocument[]): string {
  const which = declaration.id === null ? `resource ${Number(path[1]) + 1}` : `id ${quoted(declaration.id)}`;
  return `module ${quoted(modules[module]?.name ?? '')} (${which})`;
}
