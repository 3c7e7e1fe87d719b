#include "model/runtime/text/abbreviations.h"

namespace linnet::model {
namespace {

// ICU's own suppression lists are not used for these languages: in ICU 72 the English list lacks
// "Dr." and contains "In." and "Go.", the German one "Test." and "am.", and they have no entries
// like "usw." that may end a sentence.

// clang-format off
constexpr absl::string_view kEnglishNeverLast[] = {
    "Mr.", "Mrs.", "Ms.", "Mx.", "Dr.", "Drs.", "Prof.", "Rev.", "Hon.", "Gov.", "Sen.", "Rep.", "Pres.", "Gen.", "Col.",
    "Maj.", "Capt.", "Cpt.", "Lt.", "Sgt.", "Cpl.", "Pvt.", "Adm.", "Cmdr.", "Messrs.", "Mme.", "Mlle.", "Mt.", "Ft.",
    "vs.", "e.g.", "eg.", "i.e.", "ie.", "cf.", "viz.", "ca.", "approx.", "resp.", "incl.", "esp.", "Ph.", "Univ.", "Assn.",
    "Supt.", "Insp.", "Det.", "Fr.", "w.r.t.", "a.k.a.",
};
constexpr absl::string_view kEnglishSeldomLast[] = {
    "etc.", "al.", "Inc.", "Ltd.", "Co.", "Corp.", "Bros.", "LLC.", "plc.", "Jr.", "Sr.", "Esq.", "Ph.D.", "M.D.", "B.A.",
    "M.A.", "B.Sc.", "M.Sc.", "D.C.", "U.S.", "U.K.", "U.N.", "E.U.", "U.S.A.", "U.S.S.R.", "N.Y.", "L.A.", "a.m.", "p.m.",
    "A.M.", "P.M.", "A.D.", "B.C.", "C.E.", "B.C.E.", "Jan.", "Feb.", "Apr.", "Aug.", "Sept.", "Sep.", "Oct.", "Nov.", "Dec.",
    "St.", "Ave.", "Blvd.", "Rd.", "Dept.", "est.", "ed.", "eds.", "trans.", "repr.", "sq.", "ft.", "lb.", "lbs.", "oz.", "hr.", "hrs.",
};
constexpr absl::string_view kEnglishBeforeNumber[] = {
    "No.", "Nos.", "Nr.", "Fig.", "Figs.", "Eq.", "Eqs.", "Sec.", "Sect.", "Ch.", "Chap.", "Vol.", "Vols.", "p.", "pp.", "Art.",
    "Tab.", "Ref.", "Refs.", "Ex.", "Thm.", "Mar.", "Jun.", "Jul.", "Mon.", "Tue.", "Wed.", "Thu.", "Fri.", "Sat.", "Sun.", "c.",
};
constexpr absl::string_view kEnglishStarters[] = {
    "A", "An", "The", "This", "That", "These", "Those", "There", "Then", "It", "Its", "He", "His", "She", "Her", "They", "Their",
    "We", "Our", "You", "Your", "I", "My", "In", "On", "At", "As", "If", "When", "While", "Where", "Why", "How", "What", "Who",
    "But", "And", "Or", "So", "However", "Please", "Do", "Does", "Did", "Is", "Are", "Was", "Were", "Can", "After", "Before",
    "For", "From", "With", "Both", "Some", "Many", "Most", "All", "No", "Yes", "Not", "Now", "Today", "Here", "Let", "Since",
};

constexpr absl::string_view kGermanNeverLast[] = {
    "Dr.", "Drs.", "Prof.", "Hr.", "Hrn.", "Fr.", "Frl.", "Dipl.", "Dipl.-Ing.", "Ing.", "Mag.", "Univ.", "Pfr.", "Hl.", "hl.",
    "St.", "Gebr.", "Fam.", "Fa.", "Nr.", "Nrn.", "Abb.", "Tab.", "Bd.", "Bde.", "Kap.", "Abs.", "Anm.", "Hrsg.", "hrsg.",
    "bzw.", "vgl.", "ca.", "evtl.", "ggf.", "ggfs.", "inkl.", "exkl.", "einschl.", "zzgl.", "abzgl.", "max.", "min.", "sog.",
    "insb.", "insbes.", "bes.", "allg.", "gem.", "lt.", "geb.", "gest.", "verh.", "ehem.", "urspr.", "eigtl.", "entspr.", "jew.",
    "dt.", "engl.", "frz.", "lat.", "griech.", "ital.", "österr.", "schweiz.",
    "kath.", "ev.", "staatl.", "städt.", "techn.", "wiss.", "zit.", "vs.", "mind.", "z.B.", "d.h.", "u.a.", "i.d.R.",
    "i.Allg.", "i.A.", "i.V.", "i.e.", "i.S.", "i.S.d.", "i.S.v.", "z.T.", "z.Z.", "z.Zt.", "z.Hd.", "s.o.", "s.u.", "o.g.", "u.U.",
    "u.Z.", "v.a.", "o.ä.", "o.Ä.", "m.E.", "m.a.W.", "a.a.O.", "a.d.", "b.a.w.", "ggü.", "bzgl.", "betr.", "Betr.",
    "eingetr.", "Ges.", "Abt.", "Inh.", "Verf.", "Übers.", "Aufl.", "Ausg.", "u.d.T.", "e.g.",
};
constexpr absl::string_view kGermanSeldomLast[] = {
    "usw.", "etc.", "usf.", "u.s.w.", "u.v.m.", "u.v.a.", "u.v.a.m.", "u.ä.", "u.Ä.", "u.ä.m.", "dgl.", "u.dgl.", "u.dgl.m.",
    "v.Chr.", "n.Chr.", "e.V.", "a.D.", "jun.", "sen.", "jr.", "Jr.", "Inc.", "Co.", "Ltd.", "Corp.", "U.S.", "U.S.A.", "M.A.",
    "B.A.", "Ph.D.", "f.", "ff.", "i.R.", "a.M.", "a.d.R.", "Chr.",
    "Str.", "Tel.", "Mio.", "Mrd.", "Tsd.", "Std.", "Min.", "Sek.", "Jh.", "Jhd.", "Jhdt.", "Jan.", "Feb.", "Febr.", "Apr.",
    "Aug.", "Sept.", "Okt.", "Nov.", "Dez.", "Mo.", "Di.", "Mi.", "Do.", "Sa.",
};
constexpr absl::string_view kGermanBeforeNumber[] = {"S.", "Art.", "Vol.", "Fig.", "No.", "Ziff.", "Rn.", "Rdnr.", "Z.", "p.", "pp.", "Mär."};
constexpr absl::string_view kGermanStarters[] = {
    "Der", "Die", "Das", "Den", "Dem", "Des", "Ein", "Eine", "Einen", "Einem", "Einer", "Dies", "Diese", "Dieser", "Dieses",
    "Ich", "Du", "Er", "Sie", "Es", "Wir", "Ihr", "Ihre", "Mein", "Meine", "Sein", "Seine", "Unser", "Unsere", "Man", "Wer",
    "Was", "Wann", "Wo", "Wie", "Warum", "Wenn", "Als", "Da", "Dann", "Danach", "Daher", "Dort", "Hier", "Heute", "Und", "Oder",
    "Aber", "Doch", "Denn", "Auch", "Nur", "Nun", "Jetzt", "Im", "In", "Am", "An", "Auf", "Bei", "Mit", "Nach", "Von", "Vor",
    "Für", "Aus", "Zu", "Zum", "Zur", "Ist", "Sind", "War", "Hat", "Haben", "Kann", "Bitte", "Ja", "Nein", "Nicht", "Alle",
    "Kein", "Keine", "Sonst", "So", "Später", "Seit", "Damit", "Dabei", "Dafür", "Trotzdem", "Allerdings", "Außerdem", "Zwei",
};
// clang-format on

constexpr Abbreviations kEnglish = {.never_last = kEnglishNeverLast,
                                    .seldom_last = kEnglishSeldomLast,
                                    .before_number = kEnglishBeforeNumber,
                                    .starters = kEnglishStarters};
constexpr Abbreviations kGerman = {.never_last = kGermanNeverLast,
                                   .seldom_last = kGermanSeldomLast,
                                   .before_number = kGermanBeforeNumber,
                                   .starters = kGermanStarters,
                                   .ordinals_with_stop = true};

}  // namespace

const Abbreviations* AbbreviationsOf(absl::string_view language) {
  if (language == "en") return &kEnglish;
  if (language == "de") return &kGerman;
  return nullptr;
}

}  // namespace linnet::model
