import { expect, test } from 'vitest';
import { operation, result, style, variety } from '../../test/examples.ts';
import { countLine, hasChanges, renderOperation, summaryText } from './plan-text.ts';

test('prints creates, updates, runs, and removals, with fields, diffs, and totals', () => {
  expect(renderOperation(operation(variety), 'web-1', style())).toBe(`Plan for web-1 with site

  + create  file-unix /etc/site.conf (site/conf)
      mode  0644
      +listen 80
      +root /srv
  ~ update  file-unix /etc/motd (site/motd)
      repairs drift
      owner  ada → root
      mode   0600 → 0644
      @@ -1,2 +1,2 @@
       Hello
      -from ada
      +from Muster
  + create  directory-unix /srv (site/dir)
  > run     script deploy (site/deploy)
      because of conf, motd
  > restart service-systemd nginx (site/svc)
      because of conf
  ~ update  file-unix /etc/site.token (site/token)
      contains a secret: its values are not shown
      content  •••• → ••••
  - remove  file-unix /etc/old (site)
      existed before Muster: its original content is restored

Plan: 2 to create, 2 to update, 1 to remove, 1 to run, 1 to restart,
  20 unchanged; 1 of them repairs drift`);
});

test('prints actions in different colors, and no escapes without color', () => {
  const colored = renderOperation(operation(variety), 'web-1', style({ colored: true }));
  expect(colored).toContain('\u001b[32m+ create ');
  expect(colored).toContain('\u001b[33m~ update ');
  expect(colored).toContain('\u001b[31m- remove ');
  expect(colored).toContain('\u001b[36m> run ');
  expect(colored).toContain('\u001b[31m-from ada');
  expect(colored).toContain('\u001b[32m+from Muster');
  expect(renderOperation(operation(variety), 'web-1', style())).not.toContain('\u001b');
});

test('prints a note for a plan without changes', () => {
  const nothing = operation([result({})]);
  expect(hasChanges(nothing)).toBe(false);
  expect(renderOperation(nothing, 'web-1', style())).toContain('Nothing to do: the machine is as declared.');
  expect(countLine(nothing, style())).toBe('Plan: 0 to create, 0 to update, 0 to remove, 1 unchanged');
  expect(renderOperation(nothing, 'web-1', style({ verbose: true }))).toContain('/etc/motd');
});

test('prints the outcome of an apply and the reasons for failures', () => {
  const applied = operation(
    [
      result({ action: 'create', status: 'changed' }),
      result({
        id: 'bad',
        type: 'script',
        identity: 'bad',
        action: 'run',
        status: 'failed',
        message: 'exit 2\nno disk',
      }),
      result({ id: 'after', identity: '/srv/x', action: 'create', status: 'skipped', message: 'bad failed' }),
      result({ id: 'half', type: 'script', identity: 'half', action: 'run', status: 'unknown' }),
    ],
    { kind: 'apply', status: 'failed', error: '2 resources failed' },
  );
  expect(renderOperation(applied, 'web-1', style())).toBe(`Apply on web-1 with site

  + created   file-unix /etc/motd (site/motd)
  ! failed    script bad (site/bad)
      exit 2
      no disk
  . skipped   file-unix /srv/x (site/after)
      bad failed
  ! unknown   script half (site/half)
      it may have run partially

error: 2 resources failed
Failed: 1 created, 0 updated, 0 removed, 0 unchanged, 1 skipped, 2 failed`);
});

test('prints failures but no details after a confirmed plan', () => {
  const text = renderOperation(
    operation(
      [
        result({ action: 'update', status: 'changed', diff: '@@ -1 +1 @@\n-a\n+b\n' }),
        result({ id: 'bad', status: 'failed', message: 'no disk' }),
      ],
      { kind: 'apply', status: 'failed' },
    ),
    'web-1',
    style(),
    false,
  );
  expect(text).toContain('~ updated   file-unix /etc/motd');
  expect(text).not.toContain('@@');
  expect(text).toContain('no disk');
});

test('describes a stale plan in words', () => {
  const refused = operation([], { kind: 'apply', status: 'failed', error: 'plan_stale: the machine has changed' });
  expect(renderOperation(refused, 'web-1', style())).toContain('error: the plan is stale: the machine has changed');
});

test('prints a queued apply as unfinished', () => {
  const text = renderOperation(operation([], { kind: 'apply', status: 'queued' }), 'web-1', style());
  expect(text).toMatch(/The operation is queued\.$/);
  expect(text).not.toContain('Nothing');
});

test('escapes text from agents and modules', () => {
  const evil = '\u001b[2J\u202eevil\u0007\nPlan: 0 to create';
  const text = renderOperation(
    operation(
      [
        result({
          module: evil,
          id: evil,
          type: evil,
          identity: evil,
          action: 'update',
          status: 'would_change',
          changes: [{ field: evil, from: evil, to: evil }],
          diff: `--- ${evil}\n+++ b\n@@ -1 +1 @@\n-${evil}\n+\u009b2J`,
          triggered_by: [evil],
          message: evil,
        }),
      ],
      { error: evil, modules: [evil] },
    ),
    evil,
    style(),
  );
  expect(text.replace(/\n/g, '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  // A single-line field must not imitate a second line of the program's output.
  expect(text.match(/^Plan: /gm)).toHaveLength(1);
});

test('truncates a long value, and prints it in full with -v', () => {
  const long = operation([
    result({ action: 'update', status: 'would_change', changes: [{ field: 'env', from: null, to: 'x'.repeat(1000) }] }),
  ]);
  expect(renderOperation(long, 'web-1', style())).toContain('x…');
  expect(renderOperation(long, 'web-1', style({ verbose: true }))).toContain('x'.repeat(1000));
});

test('prints an empty value as ""', () => {
  const change = { field: 'additional_groups', from: '', to: 'ops' };
  const moved = operation([result({ action: 'update', status: 'would_change', changes: [change] })]);
  expect(renderOperation(moved, 'web-1', style())).toContain('additional_groups  "" → ops');
});

test('puts the number of changes first in the summary', () => {
  expect(summaryText({ ...operation(variety), kind: 'apply' })).toBe('6 changed, 1 removed, 20 unchanged');
  // Only an apply changes anything.
  expect(summaryText({ ...operation(variety), kind: 'plan' })).toBe('6 to change, 1 to remove, 20 unchanged');
  expect(summaryText(operation([]))).toBe('0 resources');
  expect(summaryText({ ...operation([]), status: 'running' })).toBe('-');
});
