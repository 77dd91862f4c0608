import type { ResourceBodies } from '@muster/protocol/module';
import { describe, expect, test } from 'vitest';
import { dropInFile, isOwned, unitFile, unmasks } from '../systemd-unit/declared.ts';
import { otherUnitFault, renderSettings, renderUnit, unitFault } from '../systemd-unit/unit-file.ts';

type Body = ResourceBodies['unit-systemd'];

const unit = (body: Partial<Body>) => ({
  key: 'service-systemd:backup.timer',
  module: 'site',
  id: null,
  name: null,
  type: 'unit-systemd' as const,
  identity: 'backup.timer',
  body: { name: 'backup.timer', ...body },
  depends_on: [],
  reload_on: [],
  restart_on: [],
  rerun_on: [],
  sensitive_fields: [],
});

const lines = (text: string) => text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));

describe('rendering of settings', () => {
  test('writes the Unit section first, and adds the boot target for the type of the unit', () => {
    const settings = { 'Timer.Persistent': 'true', 'Unit.Description': 'Backup', 'Timer.OnCalendar': 'daily' };
    expect(lines(renderSettings(settings, 'backup.timer'))).toEqual([
      '[Unit]',
      'Description=Backup',
      '[Timer]',
      'OnCalendar=daily',
      'Persistent=true',
      '[Install]',
      'WantedBy=timers.target',
    ]);
    const own = renderSettings({ ...settings, 'Install.WantedBy': 'multi-user.target' }, 'backup.timer');
    expect(lines(own).filter((line) => line.startsWith('WantedBy'))).toEqual(['WantedBy=multi-user.target']);
    expect(lines(renderSettings(settings, null))).not.toContain('[Install]');
  });

  test('assigns each line of a value, so that an empty line resets the earlier assignments', () => {
    expect(lines(renderSettings({ 'Timer.OnCalendar': '\nMon 03:00\nFri 03:00' }, null))).toEqual([
      '[Timer]',
      'OnCalendar=',
      'OnCalendar=Mon 03:00',
      'OnCalendar=Fri 03:00',
    ]);
    expect(lines(renderSettings({ 'Timer.OnCalendar': 'Mon\nFri\n' }, null))).toHaveLength(3);
    expect(lines(renderSettings({ 'Timer.OnCalendar': '' }, null))).toEqual(['[Timer]', 'OnCalendar=']);
  });

  test('accepts additional settings for a service, but refuses a setting that one of its fields sets', () => {
    const service = { name: 'web', exec_start: '/bin/web', settings: { 'Service.LimitNOFILE': '65536' } };
    expect(lines(renderUnit(service))).toEqual([
      '[Service]',
      'ExecStart=/bin/web',
      'LimitNOFILE=65536',
      '[Install]',
      'WantedBy=multi-user.target',
    ]);
    expect(unitFault(service)).toBeNull();
    expect(unitFault({ ...service, user: 'web', settings: { 'Service.User': 'root' } })).toBe(
      '`user` already declares the setting Service.User',
    );
  });
});

describe('the declaration of files', () => {
  test('writes the whole unit, or only a drop-in for a unit that the agent does not own', () => {
    const settings = { 'Timer.OnCalendar': 'daily' };
    expect(unitFile(unit({ settings })).text).toContain('OnCalendar=daily');
    expect(dropInFile(unit({ settings })).text).toBeNull();
    const extended = unit({ settings, drop_in: true });
    expect([isOwned(extended), unitFile(extended).text]).toEqual([false, null]);
    expect(dropInFile(extended)).toMatchObject({
      path: '/etc/systemd/system/backup.timer.d/50-muster.conf',
      text: expect.stringContaining('OnCalendar=daily'),
    });
  });

  test('writes the declared content byte for byte, with a line break at the end', () => {
    expect(unitFile(unit({ content: '[Timer]\nOnBootSec=1' })).text).toBe('[Timer]\nOnBootSec=1\n');
    expect(unitFile(unit({ content: '[Timer]\n' })).text).toBe('[Timer]\n');
  });

  test('makes a file with a secret readable only by root', () => {
    expect(unitFile({ ...unit({ content: 'x' }), sensitive_fields: ['content'] }).mode).toBe('0600');
    expect(unitFile(unit({ content: 'x' })).mode).toBe('0644');
  });

  test('links a masked unit to /dev/null', () => {
    expect(unitFile(unit({ masked: true }))).toMatchObject({ text: null, symlink: '/dev/null' });
    expect([true, false, undefined].map((masked) => unmasks(unit(masked === undefined ? {} : { masked })))).toEqual([
      false,
      true,
      false,
    ]);
  });
});

test.each<[string, Partial<Body>, string | null]>([
  ['a plain timer', { settings: { 'Timer.OnCalendar': 'daily' }, enabled: true }, null],
  ['content that nothing starts', { content: '[Timer]\n', enabled: true }, 'no [Install] section'],
  ['content with an [Install] section', { content: '[Timer]\n[Install]\nWantedBy=a.target\n', enabled: true }, null],
  ['an empty drop-in', { drop_in: true, enabled: true }, '`drop_in` needs'],
  ['a masked unit with content', { masked: true, content: 'x' }, 'a masked unit has no `content`'],
  ['a masked unit that runs', { masked: true, running: true }, 'cannot be started: remove `running`'],
  ['a masked unit', { masked: true, running: false }, null],
  [
    'an enabled slice',
    { name: 'a.slice', settings: { 'Slice.CPUWeight': '10' }, enabled: true },
    'units start a slice',
  ],
])('checks a declaration: %s', (_what, body, fault) => {
  const found = otherUnitFault({ name: 'backup.timer', ...body });
  if (fault === null) expect(found).toBeNull();
  else expect(found).toContain(fault);
});
