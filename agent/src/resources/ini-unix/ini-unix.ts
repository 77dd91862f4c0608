import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { broughtBy } from '../file-unix/brought.ts';
import { defineProvider } from '../provider/define-provider.ts';
import { changedLines, isAbsent, linesOf, pathOf, rewrite } from '../text-edit/text-file.ts';
import { restored, type SettingBefore, settingBefore } from './before.ts';
import { diffSetting, diffSettingRemoval } from './diff.ts';
import { withoutSetting, withSetting } from './ini.ts';
import { declaredValue, look, placeOf, type SeenSetting, settingIn } from './seen.ts';

/** A setting in an INI file that the agent does not own. */
export const iniUnix = defineProvider<'ini-unix', SeenSetting, SettingBefore>({
  type: 'ini-unix',
  fields: { path: 'text', section: 'text?', key: 'text', value: 'text?', validate: 'text?', ensure: 'text?' },
  brings: (resource) => broughtBy(pathOf(resource)),
  path: pathOf,

  check({ body: { path, section, key, value } }) {
    checkPath(path);
    for (const text of [section, key, value])
      if (text != null && /[\n\r\0]/.test(text))
        throw new HostFailure('a setting must be one line, without line breaks');
    if (key.trim() === '') throw new HostFailure('`key` must not be empty');
  },

  observe: (resource, _circumstances, machine) => look(resource, machine),
  diff: diffSetting,
  inBrief: ({ content: _content, restored: back, ...seen }) =>
    JSON.parse(JSON.stringify({ ...seen, content: null, restored: back === null ? null : { ...back, diff: null } })),
  weight: ({ content, found }) => (content?.length ?? 0) + (found?.text.length ?? 0),
  remember: async (_resource, seen, _difference, before) => before ?? settingBefore(seen),

  async apply(resource, _seen, _difference, machine) {
    await rewrite(
      resource,
      machine,
      (seen) => {
        const lines = linesOf(seen);
        const found = settingIn(resource, lines);
        const place = placeOf(resource);
        if (isAbsent(resource)) return found === null ? null : withoutSetting(lines, place);
        const value = declaredValue(resource);
        return found !== null && found.value === value ? null : withSetting(lines, place, value);
      },
      resource.body.validate ?? null,
    );
    return {};
  },

  observeForRemoval(resource, before, machine) {
    const seen = look(resource, machine);
    const back = seen.type === 'file' ? restored(resource, before, linesOf(seen)) : null;
    if (back === null) return seen;
    return { ...seen, restored: { from: back.from, to: back.to, diff: changedLines(resource, seen, back.lines) } };
  },

  diffRemoval: diffSettingRemoval,

  async remove(resource, before, _seen, _difference, machine) {
    await rewrite(resource, machine, (seen) => restored(resource, before, linesOf(seen))?.lines ?? null);
    return {};
  },
});
