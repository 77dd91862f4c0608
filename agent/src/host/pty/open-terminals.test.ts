import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { identityOf } from '../../../../lib/src/process-identity.ts';
import { OpenTerminals } from './open-terminals.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-open-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const { bootId } = identityOf(process.pid);
const scope = 'muster-terminal-0123456789ab.scope';

describe.skipIf(process.platform !== 'linux')('records of open terminals', () => {
  test('finds the terminals that the previous process recorded, until their records are removed', () => {
    const open = new OpenTerminals(directory);
    const scoped = { session: { pid: 4001, startTicks: '17', bootId }, scope };
    const unscoped = { session: { pid: 4002, startTicks: '18', bootId }, scope: null };
    open.add(scoped);
    open.add(unscoped);
    const left = new OpenTerminals(directory).left().sort((one, other) => one.session.pid - other.session.pid);
    expect(left).toEqual([
      { session: { ...scoped.session, within: scope }, scope },
      { session: { ...unscoped.session, within: null }, scope: null },
    ]);
    for (const terminal of left) open.remove(terminal);
    expect(readdirSync(directory)).toEqual([]);
  });

  test('ignores records from an earlier boot, because PIDs and times repeat', () => {
    const open = new OpenTerminals(directory);
    open.add({ session: { ...identityOf(process.pid), bootId: '0b0c0d0e-0000-4000-8000-000000000000' }, scope });
    expect(open.left()).toEqual([]);
    expect(readdirSync(directory)).toEqual([]);
  });

  test('ignores files that the agent did not write, and does not delete them', () => {
    const names = [
      'agent.key',
      `open-terminal.1.2.${bootId}`,
      `open-terminal.1.2.${bootId}.ssh.service`,
      `open-terminal.-1.2.${bootId}.`,
      `open-terminal.1.2.${bootId}.${scope}.tmp`,
    ];
    for (const name of names) writeFileSync(join(directory, name), '');
    expect(new OpenTerminals(directory).left()).toEqual([]);
    expect(readdirSync(directory).sort()).toEqual(names.sort());
  });
});
