import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { providerContract } from '../../../agent/src/converge/test/provider-contract.ts';
import { noHosts } from '../test.ts';
import type { TestHosts } from '../test-hosts.ts';
import { type Prepared, SubjectMachines, stateOf } from './ground.ts';
import { resolved, type Subject } from './subject.ts';

/** Registers the provider contract for subjects, in test hosts with the real engine. */
export function describeSubjects(name: string, subjects: readonly Subject[], open: () => Promise<TestHosts>): void {
  const reason = noHosts();

  describe.skipIf(reason !== null)(`${name}${reason === null ? '' : ` (${reason})`}`, () => {
    let hosts: TestHosts;
    let machines: SubjectMachines;
    beforeAll(async () => {
      hosts = await open();
      machines = new SubjectMachines(hosts, subjects.length);
    }, 600_000);
    afterAll(async () => {
      await machines.end();
      await hosts.end();
    });

    describe.each(subjects)('$name', (subject) => {
      let prepared: Prepared | null = null;
      let clean: Record<string, string>;

      providerContract({
        moved: subject.moved,
        ...deaths(subject, subjects),
        async begin() {
          // The next test reuses the machine, unless this one left a different state.
          if (prepared !== null && !isDeepStrictEqual(await stateOf(prepared.machine, subject), clean)) prepared = null;
          if (prepared === null) {
            prepared = await machines.take(subject);
            clean = await stateOf(prepared.machine, subject);
          } else await prepared.agent.forget();
          const { machine, agent } = prepared;
          return {
            agent,
            desired: resolved(subject.desired),
            changed: resolved(subject.changed),
            snapshot: () => stateOf(machine, subject),
            async tamper() {
              const there = await stateOf(machine, subject);
              await machine.sh(subject.tamper);
              expect(await stateOf(machine, subject), 'the tampering changes something').not.toEqual(there);
            },
          };
        },
      });
    });
  });
}

/** The steps at which the agent is killed, and the minimum number of steps. */
function deaths(subject: Subject, subjects: readonly Subject[]): { deadly: (point: string) => boolean; steps: number } {
  if (subject.slow === true)
    return { deadly: (point) => point === 'together:after' || doneAndUntold.has(point), steps: 2 };
  return firstOfItsKind(subject, subjects)
    ? { deadly, steps: 3 }
    : { deadly: (point) => doneAndUntold.has(point), steps: 1 };
}

/**
 * Only the first subject of a kind is killed at every step: the others differ in the state that recovery finds, not in
 * the moment.
 */
const firstOfItsKind = (subject: Subject, subjects: readonly Subject[]): boolean =>
  subjects.find((other) => kindOf(other) === kindOf(subject)) === subject;
const kindOf = ({ desired }: Subject): string | undefined => Object.keys(desired)[0];
/** Steps after a change to the machine that the journal has not recorded yet. */
const doneAndUntold: ReadonlySet<string> = new Set(['resource:after', 'batch:ended', 'step:ended']);

/**
 * Whether the agent is killed at this point. A provider cannot distinguish a kill before an operation is taken from one
 * after, or a synced record from a written one; the engine's own tests and those of file kinds cover these points.
 */
function deadly(point: string): boolean {
  const [step] = point.split(':');
  return (
    !point.endsWith(':synced') &&
    point !== 'process:before' &&
    !/^(accepted|began|ended|finished|acknowledged|settled)/.test(step ?? '')
  );
}
