import { isMapping } from '../mapping.ts';
import { cannotBe, triggerFor } from './composition/notifications.ts';
import { isOptional, readingsOf } from './composition/readings.ts';
import { type DeclaredFields, differenceBetween } from './composition/same-resource.ts';
import { impossibleVersion } from './conditions/distro-versions.ts';
import { celPrefix, described, parameterPrefix, size, together } from './conditions.ts';
import { type Contender, canBothApply, conflictingPairs } from './conflicts.ts';
import type { Conditions } from './document.ts';
import { checkExpressions, type ReportExpression } from './expression/expression-check.ts';
import { includesIn } from './expression/template-names.ts';
import {
  createsEmptyFile,
  furtherFiles,
  isPartOfFile,
  keyOfFile,
  wholeFiles,
  whyNotBoth,
  whyNotTwice,
} from './file-parts.ts';
import { declaredCombinationFaults } from './kinds/field-combinations.ts';
import { identify, kinds, resourceTypes } from './kinds.ts';
import { quoted, suggestion } from './nearest.ts';
import { stableOrder } from './order.ts';
import {
  type Candidate,
  givenKeys,
  mapping,
  notificationTriggers,
  type Outline,
  type OutlineResource,
  type Reference,
} from './outline.ts';
import { schemaFaults } from './parameters/value-keywords.ts';
import { mergeFault, parameterFaults } from './parameters.ts';
import type { Path } from './source/tree.ts';
import { certainVariantFaults, newVariantBudget, tiedVariantFaults, type VariantBudget } from './variants.ts';
import { verificationKinds } from './verification.ts';

/** Receives a check's findings. `at` selects the key or the value at `path` as a finding's position. */
export interface Findings {
  fault(path: Path, message: string, at?: 'key' | 'value'): void;
  warning(path: Path, message: string): void;
  readonly faultInExpression: ReportExpression;
}

/**
 * Runs the checks that involve several fields of a module and that a schema cannot express.
 * @param value the whole module as written
 */
export function checkModule(value: unknown, outline: Outline, findings: Findings): void {
  const budget = newVariantBudget();
  checkChoices(value, findings);
  checkRequires(outline, findings);
  checkTemplates(outline, findings, budget);
  checkReferences(outline, findings);
  checkNotifications(outline, findings);
  checkParameters(outline, findings, budget);
  checkExpressions(outline, findings.faultInExpression, findings.warning);
  const clauses = outline.supports.map(({ conditions }) => conditions);
  for (const resource of outline.resources) {
    for (const candidate of resource.candidates) checkCandidate(resource, candidate, findings);
    if (resource.universal) continue;
    const variants = resource.variants.map(({ when }) => when);
    for (const { index, message } of certainVariantFaults(variants, resource.when, clauses, budget)) {
      const variant = index === null ? undefined : resource.variants[index];
      if (variant === undefined) findings.fault([...resource.path, 'variants'], message, 'key');
      else findings.fault(variant.path, message);
    }
  }
  checkConditions(outline, findings);
  checkIdentities(outline, findings);
  checkFurtherFiles(outline, findings);
  checkFileParts(outline, findings);
  if (outline.supports.length === 0) {
    findings.warning([], 'the module has no supports clause, so it matches no agent');
  }
}

/** Requires exactly one of several keys, all of which the schema declares as optional. */
function checkChoices(value: unknown, { fault }: Findings): void {
  const { resources, verify } = mapping(value);
  const exactlyOne = (owner: unknown, path: Path, names: readonly string[], noun: string): void => {
    if (!isMapping(owner)) return;
    const given = givenKeys(owner).filter((key) => names.includes(key));
    // An unknown key has a separate error, and is probably a misspelling of the missing key.
    if (given.length === 0 && givenKeys(owner).length > 0 && names === resourceTypes) return;
    if (given.length === 0) fault(path, `needs ${noun}`);
    for (const extra of given.slice(1)) {
      fault([...path, extra], `only one can be given: ${given[0]} or ${extra}`, 'key');
    }
  };
  const oneKind = (owner: unknown, path: Path): void =>
    exactlyOne(owner, path, resourceTypes, 'a kind, such as file-unix');
  if (Array.isArray(resources)) {
    for (const [index, resource] of resources.entries()) {
      const path = ['resources', index];
      exactlyOne(resource, path, ['resource', 'variants'], 'either resource or variants');
      oneKind(mapping(resource).resource, [...path, 'resource']);
      const { variants, notify } = mapping(resource);
      if (Array.isArray(notify))
        for (const [number, entry] of notify.entries())
          exactlyOne(
            entry,
            [...path, 'notify', number],
            Object.keys(notificationTriggers),
            'one of reload, restart, and rerun',
          );
      if (!Array.isArray(variants)) continue;
      for (const [number, variant] of variants.entries()) {
        oneKind(mapping(variant).resource, [...path, 'variants', number, 'resource']);
      }
    }
  }
  if (Array.isArray(verify)) {
    for (const [index, step] of verify.entries()) {
      exactlyOne(step, ['verify', index], Object.keys(verificationKinds), 'one of http, tcp, or command');
    }
  }
}

function checkRequires({ name, requires }: Outline, { fault }: Findings): void {
  const seen = new Set<string>();
  for (const { module, with: values, path } of requires) {
    if (module === name) fault([...path, 'module'], 'the module requires itself: remove this entry');
    if (seen.has(module)) fault([...path, 'module'], `${quoted(module)} is required twice: keep one entry`);
    seen.add(module);
    for (const [parameter, value] of Object.entries(values))
      if (JSON.stringify(value).includes('${{'))
        fault([...path, 'with', parameter], 'cannot contain an expression: write the value');
  }
}

function checkTemplates(
  { templates, resources, supports }: Outline,
  { fault, warning }: Findings,
  budget: VariantBudget,
): void {
  const clauses = supports.map(({ conditions }) => conditions);
  const byId = Map.groupBy(templates, ({ id }) => id ?? '');
  byId.delete('');
  const known = new Set(byId.keys());
  for (const [id, same] of byId) {
    const conditions = same.map(({ when }) => when);
    for (const { index } of tiedVariantFaults(conditions, {}, clauses, budget)) {
      const path = same[index ?? 0]?.path ?? [];
      const remedy = conditions.some((when) => size(when) === 0)
        ? 'rename one of them, or give each a `when`'
        : 'change a `when`, so that no agent matches two of them';
      fault([...path, 'id'], `the template id ${quoted(id)} is used twice: ${remedy}`);
    }
  }
  const contents = resources.flatMap(({ candidates }) => candidates.map(({ body }) => body.content));
  const used = new Set(
    [...templates.map(({ content }) => content), ...contents].flatMap((text) =>
      typeof text === 'string' ? includesIn(text).map(({ id }) => id) : [],
    ),
  );
  let hints = Math.min(100, Math.floor(20_000 / (known.size + 1)));
  for (const { candidates } of resources) {
    for (const { template } of candidates) {
      if (template === undefined) continue;
      used.add(template.id);
      if (!known.has(template.id)) {
        hints -= 1;
        const hint = hints < 0 ? '' : suggestion(template.id, [...known]);
        fault(template.path, `there is no template ${quoted(template.id)}${hint}`);
      }
    }
  }
  for (const { id, content, path } of templates) {
    if (foreignBraces.test(content)) warning([...path, 'content'], foreignBracesWarning(content));
    if (id !== undefined && !used.has(id)) warning(path, `no resource uses the template ${quoted(id)}`);
  }
}

function checkReferences({ name, resources }: Outline, findings: Findings): void {
  const indexOf = new Map<string, number>();
  for (const [index, { id, path }] of resources.entries()) {
    if (id === undefined) continue;
    const earlier = indexOf.get(id);
    if (earlier === undefined) indexOf.set(id, index);
    else findings.fault([...path, 'id'], `the id ${quoted(id)} is used twice: resource ${earlier + 1} has it too`);
  }
  const ids = [...indexOf.keys()];
  // Limits suggestions, because they would be slow if there are many unknown and many known names.
  let hints = Math.min(100, Math.floor(20_000 / (ids.length + 1)));
  const resolve = ({ id, path }: Reference): number[] => {
    const index = indexOf.get(id) ?? ownIndex(id, name, indexOf);
    if (index !== undefined) return [index];
    // The resource may be in another module of the agent, which is known only at resolution.
    const ofOthers = readingsOf(id).filter(({ module }) => module !== null && module !== name);
    if (ofOthers.length > 0 || isOptional(id)) return [];
    hints -= 1;
    findings.fault(path, `there is no resource with the id ${quoted(id)}${hints < 0 ? '' : suggestion(id, ids)}`);
    return [];
  };
  const dependencies = resources.map(({ dependsOn, candidates }) => [
    ...dependsOn.flatMap(resolve),
    ...candidates.flatMap(({ triggers }) =>
      Object.values(triggers).flatMap((references) => references.flatMap(resolve)),
    ),
  ]);
  for (const [index, { notify }] of resources.entries())
    for (const target of notify.flatMap(resolve)) dependencies[target]?.push(index);
  for (const { candidates } of resources) {
    for (const { triggers } of candidates) {
      const reloading = new Set(triggers.reload_on?.map(({ id }) => id));
      for (const { id, path } of triggers.restart_on ?? []) {
        if (reloading.has(id))
          findings.fault(
            path,
            `${quoted(id)} is also in reload_on: remove it there, because a restart includes a reload`,
          );
      }
    }
  }
  checkCycles(resources, dependencies, findings);
}

/** Returns the index of the resource that a reference such as `vhost?` or `this-module:vhost` refers to. */
function ownIndex(id: string, name: string, indexOf: ReadonlyMap<string, number>): number | undefined {
  const own = readingsOf(id).find(
    (reading) => (reading.module === null || reading.module === name) && indexOf.has(reading.id),
  );
  return own === undefined ? undefined : indexOf.get(own.id);
}

/** Refuses a notification if the kind of the resource does not support the trigger. */
function checkNotifications({ name, resources }: Outline, { fault }: Findings): void {
  const indexOf = new Map(resources.flatMap(({ id }, index) => (id === undefined ? [] : [[id, index] as const])));
  const notImmediately = 'cannot be combined with rerun: let later resources depend on the script instead';
  for (const { notify, candidates } of resources) {
    for (const { triggers } of candidates)
      for (const { immediately, path } of triggers.rerun_on ?? [])
        if (immediately === true) fault([...path, 'immediately'], notImmediately, 'key');
    for (const { trigger, id, path, immediately } of notify) {
      if (immediately === true && trigger === 'rerun_on')
        fault([...path.slice(0, -1), 'immediately'], notImmediately, 'key');
      const candidates = resources[ownIndex(id, name, indexOf) ?? -1]?.candidates ?? [];
      if (candidates.length > 0 && candidates.every(({ type }) => triggerFor(type, trigger) === null))
        fault(path, `${quoted(id)} is a ${candidates[0]?.type}, which ${cannotBe[trigger]}`);
    }
  }
}

function checkCycles(
  resources: readonly OutlineResource[],
  dependencies: readonly number[][],
  { fault, warning }: Findings,
): void {
  const sorted = stableOrder(dependencies);
  if (sorted.ok) return;
  const named = [...sorted.cycle, sorted.cycle[0] as number].map(
    (index) => resources[index]?.id ?? `resource ${index + 1}`,
  );
  const shown = named.length > 12 ? [...named.slice(0, 10), '…', ...named.slice(-1)] : named;
  const message = `dependency cycle: ${shown.join(' -> ')}`;
  const first = resources[sorted.cycle[0] as number] as OutlineResource;
  // Variants may refer to each other if no agent gets both of them.
  const members = sorted.cycle.map((index) => resources[index] as OutlineResource);
  const always = members.every(({ universal }) => universal);
  const meet = together(...members.map(({ when }) => when)) !== undefined;
  const byDependsOn = members.every(({ dependsOn }, position) => {
    const next = members[(position + 1) % members.length]?.id;
    return dependsOn.some(({ id }) => id === next);
  });
  if (meet && (always || byDependsOn)) fault(first.path, message);
  else warning(first.path, `${message}, if all of them apply to one agent`);
}

function checkParameters({ parameters, supports }: Outline, { fault, warning }: Findings, budget: VariantBudget): void {
  const clauses = supports.map(({ conditions }) => conditions);
  for (const { parameter, path } of parameters.values()) {
    const unfit = mergeFault(parameter);
    if (unfit !== undefined) fault([...path, 'merge'], unfit);
    const wrong = schemaFaults(parameter.schema, path);
    for (const found of wrong) fault(found.path, found.message);
    const conditions = parameter.variants.map(({ when }) => when);
    for (const { index, message } of tiedVariantFaults(conditions, {}, clauses, budget))
      fault([...path, 'variants', index ?? 0], message);
    if (wrong.length > 0) continue;
    for (const [index, { value }] of parameter.variants.entries()) {
      // The schema reports a missing value.
      if (value === null) continue;
      for (const found of parameterFaults(parameter, value))
        fault([...path, 'variants', index, 'value', ...found.path], found.message);
    }
    if (parameter.default === null) continue;
    for (const found of parameterFaults(parameter, parameter.default))
      fault([...path, 'default', ...found.path], found.message);
    if (JSON.stringify(parameter.default).includes('${{')) {
      warning([...path, 'default'], 'expressions in a default are not evaluated');
    }
  }
}

function checkCandidate({ id, forEach }: OutlineResource, candidate: Candidate, { fault, warning }: Findings): void {
  const { type, body, path, template } = candidate;
  const given = template === undefined ? body : { ...body, template: template.id };
  for (const found of declaredCombinationFaults(kinds[type], given))
    fault([...path, ...found.path], found.message, 'key');
  if (createsEmptyFile({ type, body: given }))
    warning(
      path,
      'declares no content, so a missing file is created empty: to skip a missing file, add `only_if: { exists }` next to `resource`',
    );
  if (typeof body.content === 'string' && foreignBraces.test(body.content))
    warning([...path, 'content'], foreignBracesWarning(body.content));
  if (type === 'script' && body.manages === undefined && id === undefined) {
    fault(path, 'a script needs an identity: add `manages`, or an id to its resource', 'key');
  }
  if (forEach !== undefined && !/\$\{\{/.test(JSON.stringify(body))) {
    fault(
      path,
      'with for_each, each element must have a different identity: use ${{ each }} in an identifying field',
      'key',
    );
  }
}

/** Opening braces of Jinja and similar languages. Scripts may contain them as input for other programs. */
const foreignBraces = /(?<![$])\{\{|\{%/;

const foreignBracesWarning = (text: string): string => {
  const found = foreignBraces.exec(text)?.[0] ?? '';
  const form =
    found === '{%'
      ? 'for a loop or a condition, write ${{ for x in … }} or ${{ if … }}'
      : 'to insert a value, write ${{ … }}';
  return `"${found}" has no meaning here: ${form}`;
};

/** Returns the conditions of a resource's other variants. */
const rivalsOf = ({ variants }: OutlineResource, candidate: Candidate): Conditions[] =>
  variants.flatMap((variant) => (variant.candidate === candidate ? [] : [variant.when]));

/** Checks conditions for unknown parameters, and warns about conditions that no agent satisfies. */
function checkConditions(
  { supports, resources, templates, verify, parameters, lookups }: Outline,
  findings: Findings,
): void {
  const check = (path: Path, when: Conditions, within: Conditions = {}): void => {
    for (const key of Object.keys(when)) {
      if (key.startsWith(celPrefix)) return;
      if (!key.startsWith(parameterPrefix)) continue;
      const message = parameterKeyFault(key.slice(parameterPrefix.length), parameters);
      if (message !== undefined) findings.fault([...path, key], message, 'key');
    }
    const both = together(within, when);
    if (both === undefined) {
      findings.warning(
        path,
        `can never be true together with the \`when\` of the resource (${described(within)}): change one of them`,
      );
      return;
    }
    const impossible = impossibleVersion(both);
    if (impossible !== undefined && impossibleVersion(within) === undefined) findings.warning(path, impossible);
  };
  for (const { path, conditions } of supports) check(path, conditions);
  for (const { path, parameter } of parameters.values())
    for (const [index, { when }] of parameter.variants.entries()) check([...path, 'variants', index, 'when'], when);
  for (const { path, when } of [...templates, ...verify]) check([...path, 'when'], when);
  for (const [name, { when }] of lookups) check(['lookups', name, 'when'], when);
  for (const { path, when, universal, variants } of resources) {
    check([...path, 'when'], when);
    if (!universal) for (const variant of variants) check([...variant.path, 'when'], variant.when, when);
  }
}

function parameterKeyFault(name: string, parameters: Outline['parameters']): string | undefined {
  const type = parameters.get(name)?.parameter.type;
  if (type === undefined)
    return `there is no parameter ${quoted(name)}${suggestion(name, [...parameters.keys()].slice(0, 100))}`;
  if (type === 'list' || type === 'map')
    return `the parameter ${quoted(name)} is a ${type}, which a condition cannot compare: use a parameter of another type`;
  return undefined;
}

function checkIdentities({ resources, supports }: Outline, { fault }: Findings): void {
  const contenders: (Contender & { candidate: Candidate; label: string; onlyIf: unknown })[] = [];
  for (const [index, resource] of resources.entries()) {
    if (resource.forEach !== undefined) continue;
    for (const candidate of resource.candidates) {
      const known = declaredIdentity(resource, candidate);
      const when = together(resource.when, candidate.when);
      if (known === undefined || when === undefined) continue;
      const rivals = rivalsOf(resource, candidate);
      contenders.push({
        resource: index,
        ...known,
        when,
        variant: candidate.when,
        rivals,
        candidate,
        onlyIf: resource.onlyIf,
      });
    }
  }
  const clauses = supports.map(({ conditions }) => conditions);
  for (const { earlier, later } of conflictingPairs(contenders, clauses)) {
    const [one, other] = [contenders[earlier], contenders[later]];
    if (one === undefined || other === undefined) continue;
    const difference = differenceBetween(fieldsOf(one), fieldsOf(other));
    if (difference === null || isUncertain(difference.fields, [one.candidate, other.candidate])) continue;
    const message = `${other.label} is declared twice: resource ${one.resource + 1} declares it too, both can apply to one agent, and ${difference.reason}; keep one of them, make them agree, or make them variants of one resource`;
    fault(other.candidate.path, message, 'key');
  }
}

const fieldsOf = ({ candidate, onlyIf }: { candidate: Candidate; onlyIf: unknown }): DeclaredFields => {
  const { type, body, template } = candidate;
  const { ensure, ...rest } = body;
  const fields: Record<string, unknown> = ensure === undefined || ensure === 'present' ? rest : { ...rest, ensure };
  // A template excludes the same fields as `content`.
  return { type, fields: template === undefined ? fields : { ...fields, content: { template: template.id } }, onlyIf };
};

/**
 * Reports whether the comparison of fields depends on expressions or templates. If so, only resolution shows a
 * difference.
 */
const isUncertain = (fields: readonly string[], candidates: readonly Candidate[]): boolean =>
  fields.length > 0 &&
  candidates.some(
    ({ body, template }) =>
      (template !== undefined && fields.includes('content')) ||
      fields.some((field) => JSON.stringify(body[field] ?? null).includes('${{')),
  );

/** Refuses a file that a resource declares besides its main object, if another resource declares it too. */
function checkFurtherFiles({ resources, supports }: Outline, { fault }: Findings): void {
  const clauses = supports.map(({ conditions }) => conditions);
  const filesOf = (candidate: Candidate): [string, string][] =>
    furtherFiles(candidate).map((file) => [keyOfFile(file), file]);
  const files = new Map(resources.flatMap(({ candidates }) => candidates.flatMap(filesOf)));
  const declarers = new Map<string, (Contender & { label: string })[]>();
  let steps = 10_000;
  for (const [index, resource] of resources.entries()) {
    if (resource.forEach !== undefined || files.size === 0) continue;
    for (const candidate of resource.candidates) {
      const known = declaredIdentity(resource, candidate);
      const when = together(resource.when, candidate.when);
      if (known === undefined || when === undefined) continue;
      const rivals = rivalsOf(resource, candidate);
      const contender = { resource: index, ...known, when, variant: candidate.when, rivals };
      const conflicts = (one: Contender): boolean =>
        --steps >= 0 && one.key !== contender.key && canBothApply(one, contender, clauses);
      for (const key of new Set([known.key, ...filesOf(candidate).map(([key]) => key)])) {
        const file = files.get(key);
        if (file === undefined) continue;
        const others = declarers.get(key) ?? [];
        const other = others.find(conflicts);
        if (steps < 0) return;
        if (other !== undefined) {
          const message = `${known.label} and resource ${other.resource + 1} (${other.label}) ${whyNotTwice(file)}`;
          fault(candidate.path, message, 'key');
        }
        others.push(contender);
        declarers.set(key, others);
      }
    }
  }
}

/**
 * Refuses a part of a file if the whole content is declared as well. Compares the paths as written, because equal strings
 * yield equal paths.
 */
function checkFileParts({ resources, supports }: Outline, { fault }: Findings): void {
  const clauses = supports.map(({ conditions }) => conditions);
  const wholes = new Map<string, (Contender & { candidate: Candidate })[]>();
  const parts: (Contender & { candidate: Candidate })[] = [];
  for (const [resource, declaration] of resources.entries()) {
    if (declaration.forEach !== undefined) continue;
    for (const candidate of declaration.candidates) {
      const { path } = candidate.body;
      const when = together(declaration.when, candidate.when);
      if (typeof path !== 'string' || when === undefined) continue;
      const rivals = rivalsOf(declaration, candidate);
      const contender = { resource, key: path, when, variant: candidate.when, rivals, candidate };
      if (isPartOfFile(candidate)) parts.push(contender);
      const { type, body, template } = candidate;
      for (const file of wholeFiles({ type, body: { ...body, template: template?.id } })) {
        const others = wholes.get(file) ?? [];
        others.push({ ...contender, key: file });
        wholes.set(file, others);
      }
    }
  }
  let steps = 10_000;
  for (const part of parts) {
    for (const whole of wholes.get(part.key) ?? []) {
      if (--steps < 0) return;
      if (conflictingPairs([whole, part], clauses).length === 0) continue;
      const message = `${part.candidate.type} ${quoted(part.key)} is a part of a file, and resource ${whole.resource + 1} ${whyNotBoth(whole.candidate.body)}`;
      fault(part.candidate.path, message, 'key');
      break;
    }
  }
}

/**
 * Returns the identity of a body as declared. Does not evaluate expressions, because equal expressions yield equal
 * values.
 */
function declaredIdentity(
  { id }: OutlineResource,
  { type, body }: Candidate,
): { key: string; label: string } | undefined {
  const kind = kinds[type];
  const identified: Readonly<Record<string, unknown>> =
    type === 'script' ? { ...body, manages: body.manages ?? id } : body;
  const values = kind.identifiedBy(identified).map((name) => identified[name]);
  if (!values.every((value) => typeof value === 'string')) return undefined;
  if (values.some((value) => value.includes('${{'))) {
    return { key: JSON.stringify([kind.space, values]), label: `${type} ${values.join(' ')}` };
  }
  const { key, identity } = identify(type, identified);
  return { key, label: identity === type ? type : `${type} ${quoted(identity)}` };
}
