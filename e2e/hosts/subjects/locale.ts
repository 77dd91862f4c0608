import { derivedRoot } from '../derived-root.ts';
import { volatilePaths } from '../root-difference.ts';
import type { Subject } from './subject.ts';

/** Builds a Debian root with the definitions of all locales. */
export const localesRoot = (): Promise<string> => derivedRoot({ name: 'locales', packages: ['locales'] });

// The bytes of the archive depend on the order in which locales were added, so `state` lists its locales instead.
const volatile = [...volatilePaths, '/usr/lib/locale/locale-archive'];
const state = 'locale -a; localedef --list-archive';

export const localeSubjects: readonly Subject[] = [
  {
    name: 'locale, new, as the default',
    desired: { locale: { name: 'de_DE.UTF-8', default: true } },
    changed: { locale: { name: 'de_DE.UTF-8', default: false } },
    tamper: `sed -i 's/^de_DE/# de_DE/' /etc/locale.gen; localedef --delete-from-archive de_DE.utf8; sed -i 's/^LANG=.*/LANG=C.UTF-8/' /etc/default/locale`,
    moved: ['entry', 'available', 'default'],
    ...{ volatile, state },
  },
  {
    name: 'locale, with an alias, next to another locale, with a different default',
    prepare: `sed -i 's/^# fr_FR.UTF-8 /fr_FR.UTF-8 /' /etc/locale.gen; locale-gen > /dev/null
printf '# By hand.\\nLANG=fr_FR.UTF-8\\nLC_TIME=C\\n' > /etc/default/locale`,
    desired: { locale: { name: 'de_DE', default: true } },
    changed: { locale: { name: 'de_DE', default: false } },
    tamper: 'sed -i s/LANG=de_DE/LANG=C/ /etc/default/locale',
    moved: ['default'],
    ...{ volatile, state },
  },
  {
    name: 'locale, absent, previously generated',
    prepare: 'sed -i "s/^# de_DE.UTF-8 /de_DE.UTF-8 /" /etc/locale.gen; locale-gen > /dev/null',
    desired: { locale: { name: 'de_DE.UTF-8', ensure: 'absent' } },
    changed: { locale: { name: 'de_DE.UTF-8', ensure: 'present' } },
    tamper: 'localedef -i de_DE -f UTF-8 -c de_DE.UTF-8',
    moved: ['available'],
    ...{ volatile, state },
  },
];
