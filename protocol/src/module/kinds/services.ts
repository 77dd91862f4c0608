import { boolean, choice, formatted, integer, line, list, map, text } from './field.ts';
import * as format from './format.ts';
import { defineKind, ensure } from './kind.ts';
import { unitSettings } from './unit-systemd.ts';

const enabled = boolean('Whether the service starts at boot');
const running = boolean('Whether the service is running');
const unixUser = formatted('User that the service runs as', format.unixAccount);
const unixGroup = formatted('Group that the service runs as', format.unixAccount);
const environment = map('Environment variables', format.environmentName, text('A value', format.noNul));

/** Reports whether a service is checked after it reacts to a changed file, which is restored if the check fails. */
export const confirms = (body: Readonly<Record<string, unknown>>): boolean =>
  body.confirm_port != null || body.confirm_command != null;

export const serviceKinds = {
  'service-systemd': defineKind({
    description: 'A systemd service: an existing unit, or a unit that Muster writes if exec_start is set',
    platforms: ['linux'],
    example: 'name: nginx\nenabled: true\nrunning: true',
    required: { name: formatted('Name of the unit, without ".service"', format.systemdUnit) },
    optional: {
      enabled,
      running,
      exec_start: line('Command line of a unit that Muster writes; without it, an existing unit is managed'),
      type: choice(
        'How systemd detects that the service has started',
        ['simple', 'exec', 'forking', 'oneshot', 'notify', 'dbus', 'idle'],
        'simple',
      ),
      description: line('Description'),
      user: unixUser,
      group: unixGroup,
      working_directory: formatted('Working directory', format.systemdWorkingDirectory),
      environment,
      dependencies: list('Units that the service requires and starts after', formatted('A unit', format.unitReference)),
      restart: choice('When systemd restarts the service', ['always', 'on_failure', 'never']),
      settings: unitSettings,
      confirm_port: integer(
        'TCP port of this machine on which the service must accept connections after a start, reload, or restart; otherwise a file that triggered it is restored',
        1,
        65_535,
      ),
      confirm_banner: line('Text that the service must send first on this port, such as SSH-2.0-'),
      confirm_command: text(
        'Shell command that must succeed after a start, reload, or restart; otherwise a file that triggered it is restored',
        format.noNul,
      ),
      ensure,
    },
    needs: { confirm_banner: 'confirm_port' },
    triggers: ['reload_on', 'restart_on'],
  }),
  'service-openrc': defineKind({
    description: 'An OpenRC service',
    platforms: ['linux'],
    example: 'name: nginx\nenabled: true\nrunning: true\nrunlevel: default',
    required: { name: formatted('Name of the service', format.openrcService) },
    optional: {
      enabled,
      running,
      runlevel: formatted('Run level in which the service is enabled', format.plainName, { whenAbsent: 'default' }),
      ensure,
    },
    triggers: ['restart_on'],
  }),
  'service-launchd': defineKind({
    description: 'A launchd job',
    platforms: ['macos'],
    example: 'name: com.example.app\nprogram_arguments: [/usr/local/bin/app, --serve]\nkeep_alive: true',
    isSupported: false,
    required: { name: formatted('Label of the job', format.plainName) },
    optional: {
      enabled,
      running,
      program_arguments: list('The program and its arguments', text('An argument', format.noNul)),
      run_at_load: boolean('Whether the job starts when it is loaded'),
      keep_alive: boolean('Whether the job is restarted when it ends'),
      user: unixUser,
      group: unixGroup,
      working_directory: formatted('Working directory', format.unixDirectory, { pattern: '^/' }),
      environment,
      standard_out_path: formatted('File for standard output', format.unixFile, { pattern: '^/' }),
      standard_error_path: formatted('File for standard error', format.unixFile, { pattern: '^/' }),
      description: line('Description'),
      ensure,
    },
    triggers: ['restart_on'],
  }),
  'service-windows': defineKind({
    description: 'A Windows service',
    platforms: ['windows'],
    example: 'name: Spooler\nstart_type: disabled\nrunning: false',
    isSupported: false,
    required: { name: formatted('Name of the service', format.windowsService) },
    optional: {
      binary_path: line('Command line'),
      display_name: line('Name in the list of services'),
      description: line('Description'),
      start_type: choice('When the service starts', ['auto', 'auto_delayed', 'manual', 'disabled']),
      running,
      account: line('Account that the service runs as'),
      dependencies: list('Services that the service requires', formatted('A service', format.windowsService)),
      ensure,
    },
    triggers: ['restart_on'],
  }),
};
