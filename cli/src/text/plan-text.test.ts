import { expect, test } from 'vitest';
import { operation, result, style, variety } from '../../test/examples.ts';
import { countLine, hasChanges, renderOperation, summaryText } from './plan-text.ts';

test('a plan says what comes, changes, runs and goes, with fields and diffs, and counts at the end', () => {
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
      holds a secret: its values are not shown
      content  •••• → ••••
  - remove  file-unix /etc/old (site)
      was there before Muster: its former content comes back

Plan: 2 to create, 2 to update, 1 to remove, 1 to run, 1 to restart, 20
  unchanged; 1 repairs drift`);
});

test('creating is green, updating yellow, removing red, running cyan; without colour there is not one escape', () => {
  const colored = renderOperation(operation(variety), 'web-1', style({ colored: true }));
  expect(colored).toContain('\u001b[32m+ create ');
  expect(colored).toContain('\u001b[33m~ update ');
  expect(colored).toContain('\u001b[31m- remove ');
  expect(colored).toContain('\u001b[36m> run ');
  expect(colored).toContain('\u001b[31m-from ada');
  expect(colored).toContain('\u001b[32m+from Muster');
  expect(renderOperation(operation(variety), 'web-1', style())).not.toContain('\u001b');
});

test('a plan with nothing to do says so', () => {
  const nothing = operation([result({})]);
  expect(hasChanges(nothing)).toBe(false);
  expect(renderOperation(nothing, 'web-1', style())).toContain('Nothing to do: the machine is as declared.');
  expect(countLine(nothing, style())).toBe('Plan: 0 to create, 0 to update, 0 to remove, 1 unchanged');
  expect(renderOperation(nothing, 'web-1', style({ verbose: true }))).toContain('/etc/motd');
});

test('an apply tells what was done and why something was not', () => {
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
      it may have run partly

error: 2 resources failed
Failed: 1 created, 0 updated, 0 removed, 0 unchanged, 1 skipped, 2 failed`);
});

test('after a plan was agreed to, its details are not told again, but failures are', () => {
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

test('an apply that has not ended yet does not look as if it had', () => {
  const text = renderOperation(operation([], { kind: 'apply', status: 'queued' }), 'web-1', style());
  expect(text).toMatch(/The operation is queued\.$/);
  expect(text).not.toContain('Nothing');
});

test('nothing that an agent or a module wrote moves the cursor or turns text round', () => {
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
  // Where a line of text is shown, a second one cannot begin with words of ours at the margin.
  expect(text.match(/^Plan: /gm)).toHaveLength(1);
});

test('a long value is cut, and shown whole on demand', () => {
  const long = operation([
    result({ action: 'update', status: 'would_change', changes: [{ field: 'env', from: null, to: 'x'.repeat(1000) }] }),
  ]);
  expect(renderOperation(long, 'web-1', style())).toContain('x…');
  expect(renderOperation(long, 'web-1', style({ verbose: true }))).toContain('x'.repeat(1000));
});

test('an empty value is told as one', () => {
  const change = { field: 'additional_groups', from: '', to: 'ops' };
  const moved = operation([result({ action: 'update', status: 'would_change', changes: [change] })]);
  expect(renderOperation(moved, 'web-1', style())).toContain('additional_groups  "" → ops');
});

test('a line of a list counts what matters first', () => {
  expect(summaryText(operation(variety))).toBe('6 changed, 1 removed, 20 unchanged');
  expect(summaryText(operation([]))).toBe('0 resources');
  expect(summaryText({ ...operation([]), status: 'running' })).toBe('-');
});
