import { boolean, formatted, map, text } from './field.ts';
import * as format from './format.ts';
import { defineKind, ensure } from './kind.ts';

/** Settings of a unit file by `Section.Key`. Each line of a value becomes a separate assignment. */
export const unitSettings = map(
  'Settings of the unit file by section and key, such as Timer.OnCalendar; each line of a value is one assignment',
  format.unitSetting,
  text('A value', format.unitSettingValue),
);

export const unitSystemdKind = {
  'unit-systemd': defineKind({
    description: 'A systemd unit of any type, such as a timer, socket, path, mount, target, or service',
    platforms: ['linux'],
    example:
      'name: backup.timer\nsettings: { Timer.OnCalendar: daily, Timer.Persistent: "true" }\nenabled: true\nrunning: true',
    required: { name: formatted('Name of the unit with its suffix, such as backup.timer', format.systemdUnitFile) },
    optional: {
      content: text('The whole unit file', format.noNul),
      settings: unitSettings,
      drop_in: boolean('Whether content or settings only extend an existing unit, in a drop-in file'),
      enabled: boolean('Whether the unit starts at boot'),
      running: boolean('Whether the unit is active'),
      masked: boolean('Whether the unit is masked, so that nothing can start it'),
      ensure,
    },
    // The same unit cannot be declared as a service as well.
    space: 'service-systemd',
    identity: (body) => String(body.name).replace(/\.service$/, ''),
    triggers: ['reload_on', 'restart_on'],
    templated: true,
    exclusive: [
      ['content', 'template', 'settings'],
      ['drop_in', 'masked'],
    ],
  }),
};
