import { describe, expect, test } from 'vitest';
import { sampled } from '../lib/test/sampled.ts';
import { expectModuleApplied } from './hosts/documentation/documented-module.ts';
import { DrivenAgent } from './hosts/driven-agent.ts';
import { firewallsRoot } from './hosts/firewalls/firewalls-root.ts';
import {
  firewalldActive,
  firewalldState,
  firewalldSubjects,
  ufwActive,
  ufwState,
  ufwSubjects,
} from './hosts/firewalls/subjects.ts';
import { describeSubjects } from './hosts/subjects/suite.ts';
import { noHosts } from './hosts/test.ts';
import { TestHosts } from './hosts/test-hosts.ts';

/** Number of subjects that `npm test` selects at random. */
const sampleSize = 2;

const open = async () => TestHosts.open({ base: await firewallsRoot() });

describeSubjects('firewalls on a test host', sampled([...ufwSubjects, ...firewalldSubjects], sampleSize), open);

const reason = noHosts();
/** Each firewall with the shell texts that start it, print its state, and stop it. */
const firewalls = [
  { name: 'idiom-ufw', family: 'debian', start: ufwActive(), state: ufwState, stop: 'ufw --force disable > /dev/null' },
  {
    name: 'idiom-firewalld',
    family: 'redhat',
    start: firewalldActive,
    state: firewalldState,
    stop: 'systemctl stop firewalld',
  },
];

describe.skipIf(reason !== null)(`the documented rules of firewalls${reason === null ? '' : ` (${reason})`}`, () => {
  test('a machine applies and removes the idioms for ufw and firewalld', async () => {
    const hosts = await open();
    try {
      const machine = await hosts.start('firewalls');
      const agent = await DrivenAgent.start(machine);
      for (const { name, family, start, state, stop } of firewalls) {
        await machine.sh(start);
        const before = await machine.sh(state);
        await expectModuleApplied(agent, name, { family });
        expect(await machine.sh(state)).toBe(before);
        await machine.sh(stop);
      }
    } finally {
      await hosts.end();
    }
  });
});
