import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { codePoint } from '../../../../protocol/test/code-point.ts';
import { enrolmentLines, type InstallFacts, installSource, noteOnAgents, word } from './enrollment-line.ts';

const publicKey = 'ab'.repeat(32);
const source = { from: 'https://muster.example:4748', pin: 'sha256//qwerty+/=' };
const endpoints = { agents: 'muster.example:4747', publicKey, install: source };

describe('word', () => {
  test('quotes any text as a single shell word', () => {
    const hostile = [
      '',
      ' ',
      "'",
      '"',
      '$(touch /tmp/x)',
      '`id`',
      'a\nb',
      '*',
      '~',
      '-n',
      '\\',
      "';id;'",
      '${IFS}',
      '!!',
      '#',
      'é',
      '\t',
    ];
    const text = fc.oneof(fc.constantFrom(...hostile), fc.string({ unit: 'grapheme' }), fc.string({ unit: codePoint }));
    // A few shells with many words, because starting a shell takes longer than quoting hundreds of words.
    fc.assert(
      fc.property(fc.array(text, { minLength: 60, maxLength: 100 }), (texts) => {
        // An argument cannot contain a NUL byte, and a lone surrogate has no UTF-8 encoding.
        const given = texts.map((text) => text.replaceAll('\0', '').toWellFormed());
        const { stdout, stderr } = spawnSync('sh', [], { input: `printf '%s\\0' end ${given.map(word).join(' ')}` });
        expect(String(stderr)).toBe('');
        expect(String(stdout).split('\0').slice(1, -1)).toEqual(given);
      }),
      { numRuns: 8 },
    );
  });
});

describe('enrollment line', () => {
  test('fetches the script with a pinned key and keeps the token out of the arguments', () => {
    const { command, connect_command, note } = enrolmentLines(endpoints, 'mt_1', true);
    expect(command).toBe(
      "(curl -fsSk --pinnedpubkey 'sha256//qwerty+/=' https://muster.example:4748/install/agent.sh || echo exit 1) | " +
        "MUSTER_TOKEN=mt_1 sh -s -- --from https://muster.example:4748 --pin 'sha256//qwerty+/=' " +
        `--to muster.example:4747 --key ${publicKey}`,
    );
    expect(connect_command).toBe(
      `MUSTER_TOKEN=mt_1 muster agent connect muster.example:4747 --orchestrator-key ${publicKey}`,
    );
    expect(note).toBeNull();
  });

  test('uses regular certificate verification behind a proxy', () => {
    const install = { from: 'https://muster.example', pin: null };
    const { command } = enrolmentLines({ ...endpoints, install }, 'mt_1', false);
    expect(command).toMatch(/^\(curl -fsS https:\/\/muster\.example\/install\/agent\.sh \|\| /);
    expect(command).not.toContain('pin');
    expect(command).toMatch(/ --wait no$/);
  });

  test('shows the connect command and the reason if packages are unavailable', () => {
    const { command, connect_command, note } = enrolmentLines(
      { ...endpoints, install: { refused: 'why' } },
      'mt_1',
      true,
    );
    expect({ command, note }).toEqual({ command: connect_command, note: 'why' });
  });

  test('fails if the script is not downloaded completely', () => {
    const { command } = enrolmentLines(endpoints, 'mt_1', true);
    const ended = (curl: string) => spawnSync('sh', ['-c', `curl() { ${curl}; }\n${command}`]).status;
    expect(ended('return 90')).not.toBe(0);
    expect(ended('echo "main() {"; echo "exit 0"; return 18')).not.toBe(0);
    expect(ended('echo exit 0')).toBe(0);
  });

  test('never executes part of a configured address', () => {
    const hostile = "x'; touch /tmp/muster-was-here; $(id)";
    const { command } = enrolmentLines(
      { agents: `${hostile}:4747`, publicKey, install: { from: `https://${hostile}`, pin: null } },
      'mt_1',
      true,
    );
    const program = 'curl() { printf "<%s>" "$@"; }; sh() { cat; printf "<%s>" "$@"; }';
    const { stdout, stderr } = spawnSync('sh', ['-c', `${program}\n${command}`]);
    expect(String(stderr)).toBe('');
    expect(String(stdout)).toContain(`<https://${hostile}/install/agent.sh>`);
    expect(String(stdout)).toContain(`<--to><${hostile}:4747>`);
  });
});

describe('install source', () => {
  const facts: InstallFacts = {
    hasPackages: true,
    apiHost: '0.0.0.0',
    tls: true,
    publicUrl: null,
    ownUrl: 'https://muster.example:4748',
    keyDigest: 'k',
  };
  test('installs from the API with its pinned key, or from a proxy with its certificate', () => {
    expect(installSource(facts)).toEqual({ from: 'https://muster.example:4748', pin: 'sha256//k' });
    const proxied = { ...facts, apiHost: '127.0.0.1', tls: false, keyDigest: null, publicUrl: 'https://m.example/' };
    expect(installSource(proxied)).toEqual({ from: 'https://m.example', pin: null });
  });

  test.each<[string, Partial<InstallFacts>, string]>([
    ['has no packages', { hasPackages: false }, 'npm run build'],
    ['only listens on 127.0.0.1', { apiHost: '127.0.0.1' }, 'Set api_host'],
    ['only listens on localhost', { apiHost: 'localhost' }, 'Set api_host'],
    ['does not use TLS', { tls: false, keyDigest: null }, 'Set public_url'],
  ])('refuses to install if the orchestrator %s', (_, more, advice) => {
    expect(installSource({ ...facts, ...more })).toEqual({ refused: expect.stringContaining(advice) });
  });
});

describe('note on the address for agents', () => {
  test('notes if other machines cannot connect or resolve the hostname', () => {
    expect(noteOnAgents('127.0.0.1', null, 'control')).toContain('agent_host is 127.0.0.1. Set agent_host');
    expect(noteOnAgents('::1', 'muster.example', 'control')).toContain('only from the orchestrator’s own machine');
    expect(noteOnAgents('0.0.0.0', null, 'control')).toContain('must be able to resolve control');
    expect(noteOnAgents('0.0.0.0', 'muster.example', 'control')).toBeNull();
  });

  test('joins the reason for not installing with the note on addresses', () => {
    const { note } = enrolmentLines({ ...endpoints, install: { refused: 'Why.' }, note: 'Agents.' }, 'mt_1', true);
    expect(note).toBe('Why. Agents.');
  });
});
