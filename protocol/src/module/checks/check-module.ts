import { isMapping } from '../../mapping.ts';
import { impossibleVersion } from '../conditions/distro-versions.ts';
import { celPrefix, described, parameterPrefix, size, together } from '../conditions.ts';
import type { Conditions } from '../document.ts';
import { checkExpressions } from '../expression/expression-check.ts';
import { includesIn } from '../expression/template-names.ts';
import { createsEmptyFile } from '../file-parts.ts';
import { declaredCombinationFaults } from '../kinds/field-combinations.ts';
import { foreignBraces } from '../kinds/foreign-braces.ts';
import { kinds, resourceTypes } from '../kinds.ts';
import { quoted, suggestion } from '../nearest.ts';
import {
  type Candidate,
  givenKeys,
  mapping,
  notificationTriggers,
  type Outline,
  type OutlineResource,
} from '../outline.ts';
import { schemaFaults } from '../parameters/value-keywords.ts';
import { mergeFault, parameterFaults } from '../parameters.ts';
import type { Path } from '../source/tree.ts';
import { certainVariantFaults, newVariantBudget, tiedVariantFaults, type VariantBudget } from '../variants.ts';
import { verificationKinds } from '../verification.ts';
import { checkDoubleDeclarations } from './double-declarations.ts';
import type { Findings } from './findings.ts';
import { checkNotifications, checkReferences } from './references.ts';

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
  checkDoubleDeclarations(outline, findings);
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
    const braces = foreignBraces(content);
    if (braces !== undefined) warning([...path, 'content'], braces);
    if (id !== undefined && !used.has(id)) warning(path, `no resource uses the template ${quoted(id)}`);
  }
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
  const braces = typeof body.content === 'string' ? foreignBraces(body.content) : undefined;
  if (braces !== undefined) warning([...path, 'content'], braces);
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
