import { boolean, choice, formatted, line, list, map, text } from './field.ts';
import * as format from './format.ts';
import { defineKind, ensure } from './kind.ts';

const enabled = boolean('Whether it starts with the machine');
const running = boolean('Whether it runs now');
const unixUser = formatted('User it runs as', format.unixAccount);
const unixGroup = formatted('Group it runs as', format.unixAccount);
const environment = map('Environment variables', format.environmentName, text('A value', format.noNul));

export const serviceKinds = {
  'service-systemd': defineKind({
    description: 'A systemd service: an existing unit adopted, or with exec_start one of ours',
    platforms: ['linux'],
    example: 'name: nginx\nenabled: true\nrunning: true',
    required: { name: formatted('Name of the unit, without ".service"', format.systemdUnit) },
    optional: {
      enabled,
      running,
      exec_start: line('Command line; absent: the existing unit is adopted'),
      type: choice('How systemd knows it has started; simple when absent', [
        'simple',
        'exec',
        'forking',
        'oneshot',
        'notify',
        'dbus',
        'idle',
      ]),
      description: line('Description'),
      user: unixUser,
      group: unixGroup,
      working_directory: formatted('Working directory', format.systemdWorkingDirectory),
      environment,
      dependencies: list('Units it needs, and starts after', formatted('A unit', format.unitReference)),
      restart: choice('When systemd starts it again', ['always', 'on_failure', 'never']),
      ensure,
    },
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
      runlevel: formatted('Run level it is enabled in; default when absent', format.plainName),
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
      run_at_load: boolean('Whether it runs as soon as it is loaded'),
      keep_alive: boolean('Whether it is started again when it ends'),
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
      display_name: line('Name for people'),
      description: line('Description'),
      start_type: choice('When it starts', ['auto', 'auto_delayed', 'manual', 'disabled']),
      running,
      account: line('Account it runs as'),
      dependencies: list('Services it needs', formatted('A service', format.windowsService)),
      ensure,
    },
    triggers: ['restart_on'],
  }),
};
