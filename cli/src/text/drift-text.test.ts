import { expect, test } from 'vitest';
import { drift, result, style } from '../../test/examples.ts';
import { renderDrift } from './drift-text.ts';

const moved = result({
  action: 'update',
  status: 'would_change',
  corrective: true,
  changes: [
    { field: 'content', from: 'sha256:2c26b46b68ff', to: 'sha256:fcde2b2edba5' },
    { field: 'mode', from: '0600', to: '0644' },
  ],
  diff: '--- /etc/motd\n+++ /etc/motd\n@@ -1 +1 @@\n-edited by hand\n+Welcome\n',
});

test('prints exactly the drifted fields, with the current and the declared value', () => {
  const removed = result({
    id: 'dir',
    type: 'directory-unix',
    identity: '/srv',
    action: 'create',
    status: 'would_change',
    diff: '@@ -0,0 +1 @@\n+x\n',
    changes: [{ field: 'mode', from: null, to: '0755' }],
  });
  expect(
    renderDrift(drift([moved, removed]), 'web-1', style()),
  ).toBe(`web-1 has drifted: 2 of 26 resources differ from the applied state
checked just now against operation 01KAGZ4D3E5F6G7H8J9K0M1N2P

  ~ drifted file-unix /etc/motd (site/motd)
      mode  0600, expected 0644
      - on the machine  + expected
      @@ -1 +1 @@
      -edited by hand
      +Welcome
  + missing directory-unix /srv (site/dir)
      mode  expected 0755`);
});

test('prints one line if there is no drift', () => {
  expect(renderDrift(drift([]), 'web-1', style())).toBe(
    'web-1 is in sync: 26 resources as applied\nchecked just now against operation 01KAGZ4D3E5F6G7H8J9K0M1N2P',
  );
});

test('prints a failed check as a failure rather than as drift', () => {
  const failed = drift([result({ status: 'failed', message: 'permission denied' })], {
    status: 'failed',
    error: 'it could not be read',
  });
  const text = renderDrift(failed, 'web-1', style());
  expect(text).toContain('the drift check of web-1 failed');
  expect(text).toContain('permission denied');
  expect(text).toContain('error: it could not be read');
});

test('escapes text from an agent', () => {
  const evil = '\u001b]0;x\u0007\u202e';
  const text = renderDrift(
    drift([
      { ...moved, identity: evil, message: evil, changes: [{ field: 'mode', from: evil, to: evil }], diff: evil },
    ]),
    evil,
    style(),
  );
  expect(text.replace(/\n/g, '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
});
