import { boolean, choice, formatted, integer } from './field.ts';
import * as format from './format.ts';
import { defineKind } from './kind.ts';

export const rebootKind = {
  reboot: defineKind({
    description: 'A reboot of the machine in the middle of an apply, which continues after it',
    platforms: ['linux'],
    example: 'name: kernel\nwhen: needed\ndelay: 60',
    required: { name: formatted('Name of the reboot', format.plainName) },
    optional: {
      when: choice(
        '`needed`: if the system says that it needs a reboot, or a resource of `rerun_on` changed. `triggered`: only if a resource of `rerun_on` changed',
        ['needed', 'triggered'],
        'needed',
      ),
      delay: integer('Seconds to wait before the reboot; a cancellation in this time prevents it', 0, 3600),
      window_only: boolean(
        'Whether the machine reboots only while a maintenance window of its agent is open; otherwise, the reboot stays due',
      ),
    },
    triggers: ['rerun_on'],
  }),
};
