import DefaultTheme from 'vitepress/theme-without-fonts';
import './style.css';

/** The default theme of VitePress, with the fonts of the reader's system. */
export default DefaultTheme;
