import { type DeclaredFields, differenceBetween } from '../composition/same-resource.ts';
import { together } from '../conditions.ts';
import { type Contender, canBothApply, conflictingPairs } from '../conflicts.ts';
import type { Conditions } from '../document.ts';
import { furtherFiles, isPartOfFile, keyOfFile, wholeFiles, whyNotBoth, whyNotTwice } from '../file-parts.ts';
import { identify, kinds } from '../kinds.ts';
import { quoted } from '../nearest.ts';
import type { Candidate, Outline, OutlineResource } from '../outline.ts';
import type { Findings } from './findings.ts';

/** A body that an agent may get, and the conditions under which it gets it. */
type Declared = Omit<Contender, 'key'> & { candidate: Candidate; onlyIf: unknown };
type Identified = Declared & { key: string; label: string };
type Fault = Findings['fault'];

/** Refuses an object, or a file, that two resources declare if one agent can get both. */
export function checkDoubleDeclarations({ resources, supports }: Outline, { fault }: Findings): void {
  const clauses = supports.map(({ conditions }) => conditions);
  const all = resources.flatMap(declaredBy);
  const identified = all.flatMap(({ identity, ...rest }) => (identity === undefined ? [] : [{ ...rest, ...identity }]));
  checkIdentities(identified, clauses, fault);
  checkFurtherFiles(resources, identified, clauses, fault);
  checkFileParts(all, clauses, fault);
}

/** Returns the candidates of a resource, except those of a loop and those that no agent gets. */
function declaredBy(declaration: OutlineResource, resource: number) {
  if (declaration.forEach !== undefined) return [];
  return declaration.candidates.flatMap((candidate) => {
    const when = together(declaration.when, candidate.when);
    if (when === undefined) return [];
    const identity = declaredIdentity(declaration, candidate);
    const rivals = rivalsOf(declaration, candidate);
    return [{ resource, when, variant: candidate.when, rivals, candidate, onlyIf: declaration.onlyIf, identity }];
  });
}

function checkIdentities(contenders: readonly Identified[], clauses: readonly Conditions[], fault: Fault): void {
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
function checkFurtherFiles(
  resources: Outline['resources'],
  identified: readonly Identified[],
  clauses: readonly Conditions[],
  fault: Fault,
): void {
  const filesOf = (candidate: Candidate): [string, string][] =>
    furtherFiles(candidate).map((file) => [keyOfFile(file), file]);
  const files = new Map(resources.flatMap(({ candidates }) => candidates.flatMap(filesOf)));
  if (files.size === 0) return;
  const declarers = new Map<string, Identified[]>();
  let steps = 10_000;
  for (const contender of identified) {
    const { candidate, label } = contender;
    const conflicts = (one: Contender): boolean =>
      --steps >= 0 && one.key !== contender.key && canBothApply(one, contender, clauses);
    for (const key of new Set([contender.key, ...filesOf(candidate).map(([key]) => key)])) {
      const file = files.get(key);
      if (file === undefined) continue;
      const others = declarers.get(key) ?? [];
      const other = others.find(conflicts);
      if (steps < 0) return;
      if (other !== undefined) {
        const message = `${label} and resource ${other.resource + 1} (${other.label}) ${whyNotTwice(file)}`;
        fault(candidate.path, message, 'key');
      }
      others.push(contender);
      declarers.set(key, others);
    }
  }
}

/**
 * Refuses a part of a file if the whole content is declared as well. Compares the paths as written, because equal strings
 * yield equal paths.
 */
function checkFileParts(all: readonly Declared[], clauses: readonly Conditions[], fault: Fault): void {
  const wholes = new Map<string, (Declared & { key: string })[]>();
  const parts: (Declared & { key: string })[] = [];
  for (const declared of all) {
    const { candidate } = declared;
    const { type, body, template } = candidate;
    if (typeof body.path !== 'string') continue;
    if (isPartOfFile(candidate)) parts.push({ ...declared, key: body.path });
    for (const file of wholeFiles({ type, body: { ...body, template: template?.id } })) {
      const others = wholes.get(file) ?? [];
      others.push({ ...declared, key: file });
      wholes.set(file, others);
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

/** Returns the conditions of a resource's other variants. */
const rivalsOf = ({ variants }: OutlineResource, candidate: Candidate): Conditions[] =>
  variants.flatMap((variant) => (variant.candidate === candidate ? [] : [variant.when]));
