// What a page does beyond its HTML. Every page works without this, only less comfortably.
import { startCopying } from "./copying.js";
import { startDialogs } from "./dialogs.js";
import { startForms } from "./forms.js";
import { startKeys } from "./keys.js";
import { startLive } from "./live.js";
import { startMorphing } from "./morph.js";
import { startThemeButton } from "./theme_button.js";
import { startTimes } from "./times.js";
import { startToasts } from "./toasts.js";

startMorphing();
startTimes();
startToasts();
startDialogs();
startForms();
startCopying();
startKeys();
startThemeButton();
startLive();
