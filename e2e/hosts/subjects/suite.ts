import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { providerContract } from '../../../agent/src/converge/test/provider-contract.ts';
import { sampled, seededRandom } from '../../../lib/test/sampled.ts';
import type { Machine } from '../machine.ts';
import { sha256On } from '../registries/package-files.ts';
import { noHosts } from '../test.ts';
import type { TestHosts } from '../test-hosts.ts';
import { type Declared, kindOf, resolved, type Subject } from './subject.ts';
import { type Prepared, SubjectMachines, stateOf } from './subject-machines.ts';

/**
 * Registers the provider contract tests for subjects. They run the real engine in test hosts. `npm test` runs the first
 * subject of each kind and an eighth of the other subjects, selected at random; `npm run soak -- kill-steps` runs all.
 */
export function describeSubjects(name: string, subjects: readonly Subject[], open: () => Promise<TestHosts>): void {
  const reason = noHosts();
  const further = subjects.filter((subject) => !firstOfItsKind(subject, subjects));
  const sample = new Set(sampled(further, Math.floor(further.length / 8 + seededRandom(name))));
  const selected = subjects.filter((subject) => firstOfItsKind(subject, subjects) || sample.has(subject));

  describe.skipIf(reason !== null)(`${name}${reason === null ? '' : ` (${reason})`}`, () => {
    let hosts: TestHosts;
    let machines: SubjectMachines;
    beforeAll(async () => {
      hosts = await open();
      machines = new SubjectMachines(hosts, selected.length);
    });
    afterAll(async () => {
      await machines.end();
      await hosts.end();
    });

    describe.each(selected)('$name', (subject) => {
      let prepared: Prepared | null = null;
      let clean: Record<string, string>;
      const isFirst = firstOfItsKind(subject, subjects);
      const isClean = async ({ machine }: Prepared) => isDeepStrictEqual(await stateOf(machine, subject), clean);
      afterAll(async () => {
        if (prepared !== null && (await isClean(prepared))) machines.giveBack(subject);
      });

      providerContract({
        moved: subject.moved,
        ...deaths(subject, isFirst),
        sample: 1,
        async begin() {
          // The next test reuses the machine, unless this test left a different state.
          if (prepared !== null && !(await isClean(prepared))) prepared = null;
          if (prepared === null) {
            prepared = await machines.take(subject);
            clean = await stateOf(prepared.machine, subject);
          } else await prepared.agent.forget();
          const { machine, agent } = prepared;
          return {
            agent,
            desired: resolved(await withHash(subject.desired, machine, subject.hashed?.desired)),
            ...(subject.changed === undefined
              ? {}
              : { changed: resolved(await withHash(subject.changed, machine, subject.hashed?.changed)) }),
            snapshot: () => stateOf(machine, subject),
            async tamper() {
              const there = await stateOf(machine, subject);
              await machine.sh(subject.tamper);
              expect(await stateOf(machine, subject), '`tamper` changes the state').not.toEqual(there);
            },
          };
        },
      });
    });
  });
}

/** Adds the hash of a file on the machine to a declaration. */
async function withHash(declared: Declared, machine: Machine, path: string | undefined): Promise<Declared> {
  if (path === undefined) return declared;
  const sha256 = await sha256On(machine, path);
  return Object.fromEntries(Object.entries(declared).map(([kind, body]) => [kind, { ...body, sha256 }]));
}

/**
 * Returns a function that reports whether the tests kill the agent at a point, and the minimum number of such points.
 */
function deaths(subject: Subject, isFirst: boolean): { deadly: (point: string) => boolean; steps: number } {
  if (subject.slow === true)
    return { deadly: (point) => point === 'together:after' || unrecordedSteps.has(point), steps: 2 };
  return isFirst ? { deadly, steps: 3 } : { deadly: (point) => unrecordedSteps.has(point), steps: 1 };
}

/**
 * Reports whether the subject is the first one of its kind. The tests kill the agent at every kind of step only for the
 * first subject. The other subjects have the same steps and differ only in their state.
 */
const firstOfItsKind = (subject: Subject, subjects: readonly Subject[]): boolean =>
  subjects.find((other) => kindOf(other) === kindOf(subject)) === subject;
/** Steps at which the machine has changed, but the journal does not contain the result yet. */
const unrecordedSteps: ReadonlySet<string> = new Set(['resource:after', 'batch:ended', 'step:ended']);

/**
 * Reports whether the tests kill the agent at this point. Omits points that make no difference to a provider, such as
 * when an operation is accepted or a journal record is synced. The engine and file tests cover these.
 */
function deadly(point: string): boolean {
  const [step] = point.split(':');
  return (
    !point.endsWith(':synced') &&
    point !== 'process:before' &&
    !/^(accepted|began|ended|finished|acknowledged|settled)/.test(step ?? '')
  );
}
