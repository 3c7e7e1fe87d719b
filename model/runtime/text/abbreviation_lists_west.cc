#include "model/runtime/text/abbreviation_lists.h"

namespace linnet::model {
namespace {

// clang-format off
// CLDR's suppressions are not used for English and German: in ICU 72 the English list lacks "Dr." and contains "In." and
// "Go.", the German one "Test." and "am.", and they have no entries like "usw." that may end a sentence.
constexpr AbbreviationLists kWesternLists[] = {
    {.language = "en",
     .never_last =
         "Mr. Mrs. Ms. Mx. Dr. Drs. Prof. Profs. Rev. Hon. Gov. Sen. Rep. Pres. Gen. Col. Maj. Capt. Cpt. Lt. Sgt. Cpl. Pvt. "
         "Adm. Cmdr. Messrs. Mme. Mlle. Mt. Ft. vs. e.g. eg. i.e. ie. cf. viz. ca. approx. resp. incl. esp. Ph. Univ. Assn. "
         "Assoc. Supt. Insp. Det. Fr. w.r.t. a.k.a.",
     .seldom_last =
         "Inc. Ltd. Co. Corp. Bros. LLC. plc. Jr. Sr. Esq. Ph.D. M.D. B.A. M.A. B.Sc. M.Sc. D.C. U.S. U.K. U.N. E.U. U.S.A. "
         "U.S.S.R. N.Y. L.A. A.D. B.C. C.E. B.C.E. Jan. Feb. Apr. Aug. Sept. Sep. Oct. Nov. Dec. St. Ave. Blvd. Rd. Dept. est. "
         "ed. eds. trans. repr. sq. ft. lb. lbs. oz. hr. hrs. ext. Intl. Mfg. Natl.",
     .before_number =
         "no. nos. nr. fig. figs. eq. eqs. sec. sect. ch. chap. vol. vols. p. pp. art. tab. ref. refs. ex. thm. Mar. Jun. Jul. "
         "Mon. Tue. Wed. Thu. Fri. Sat. Sun. c. tel. app. para. cl. par. pt. pts. ser. suppl. apt. ste. bldg. rm. ph.",
     .closing = "etc. al.",
     .starters =
         "A An The This That These Those There Then It Its He His She Her They Their We Our You Your I My In On At As If When "
         "While Where Why How What Who But And Or So However Please Do Does Did Is Are Was Were Can After Before For From With "
         "Both Some Many Most All No Yes Not Now Today Here Let Since By Although During Under Such Each Also Only Once Until "
         "Thanks Would Could Should Will Has Have Had Because Well Just Every One Two Another Later Even Instead",
     .without_cldr = true},
    {.language = "de",
     .never_last =
         "Dr. Drs. Prof. Hr. Hrn. Fr. Frl. Dipl. Dipl.-Ing. Ing. Mag. Univ. Pfr. Hl. hl. St. Gebr. Fam. Fa. Nr. Nrn. Abb. Tab. "
         "Bd. Bde. Kap. Abs. Anm. Hrsg. hrsg. bzw. vgl. ca. evtl. ggf. ggfs. inkl. exkl. einschl. zzgl. abzgl. max. min. sog. "
         "insb. insbes. bes. allg. gem. lt. geb. gest. verh. ehem. urspr. eigtl. entspr. jew. dt. engl. frz. lat. griech. ital. "
         "österr. schweiz. kath. ev. staatl. städt. techn. wiss. zit. vs. mind. z.B. d.h. u.a. i.d.R. i.Allg. i.A. i.V. i.e. "
         "i.S. i.S.d. i.S.v. z.T. z.Z. z.Zt. z.Hd. s.o. s.u. o.g. u.U. u.Z. v.a. o.ä. o.Ä. m.E. m.a.W. a.a.O. a.d. b.a.w. ggü. "
         "bzgl. betr. Betr. eingetr. Ges. Abt. Inh. Verf. Übers. Aufl. Ausg. u.d.T. e.g. Dres. Stud. Reg.",
     .seldom_last =
         "usw. etc. usf. u.s.w. u.v.m. u.v.a. u.v.a.m. u.ä. u.Ä. u.ä.m. dgl. u.dgl. u.dgl.m. v.Chr. n.Chr. e.V. a.D. jun. sen. "
         "jr. Jr. Inc. Co. Ltd. Corp. U.S. U.S.A. M.A. B.A. Ph.D. f. ff. i.R. a.M. a.d.R. Chr. Str. Tel. Mio. Mrd. Tsd. Std. "
         "Min. Sek. Jh. Jhd. Jhdt. Jan. Feb. Febr. Apr. Aug. Sept. Okt. Nov. Dez. Mo. Di. Mi. Do. Sa. h.c.",
     .before_number = "S. Art. Vol. Fig. No. Ziff. Rn. Rdnr. Z. p. pp. Mär. So. *str. *Str. Pos. Hs. Whg.",
     .starters =
         "Der Die Das Den Dem Des Ein Eine Einen Einem Einer Dies Diese Dieser Dieses Ich Du Er Sie Es Wir Ihr Ihre Mein Meine "
         "Sein Seine Unser Unsere Man Wer Was Wann Wo Wie Warum Wenn Als Da Dann Danach Daher Dort Hier Heute Und Oder Aber Doch "
         "Denn Auch Nur Nun Jetzt Im In Am An Auf Bei Mit Nach Von Vor Für Aus Zu Zum Zur Ist Sind War Hat Haben Kann Bitte Ja "
         "Nein Nicht Alle Kein Keine Sonst So Später Seit Damit Dabei Dafür Trotzdem Allerdings Außerdem Zwei Durch Während "
         "Unter Über Diesem Diesen",
     .without_cldr = true,
     .ordinals_with_stop = true,
     .roman_ordinals_with_stop = true},
    {.language = "nl",
     .never_last =
         "dhr. mevr. mw. dr. drs. ir. ing. mr. prof. ds. mgr. St. Sint. sr. jhr. gen. kol. kap. lt. burg. bijv. bv. o.a. o.m. "
         "d.w.z. m.b.t. i.p.v. t.o.v. t.b.v. i.v.m. a.d.h.v. incl. excl. resp. vgl. nl. ca. evt. zgn. m.n. m.i. z.g. a.k.a. "
         "i.h.a. i.h.b. w.o. vs. plm. h. Mrs. Ms.",
     .seldom_last = "jr. B.V. N.V. str. tel. jan. febr. feb. apr. aug. sept. okt. nov. dec. Inc. Ltd. Co. Corp.",
     .before_number = "nr. nrs. art. p. pp. blz. pag. vol. fig. hfdst. lid. jg. afb. tab. no. kl. *str.",
     .closing = "enz. etc. e.d. e.a. v.Chr. n.Chr.",
     .measures = "mln. mld. min. sec.",
     .starters =
         "De In Het Hij Een Dit Ook Zijn Deze Maar Op Ze Met En Er Dat Van Als Toen Zo Voor Na Ik Bij Tijdens Volgens Omdat "
         "Andere Veel Door Men Om Daar Zij We Wij Sommige Onder Zie Uit Vanaf Tot Die Daarmee Twee Dan Hoewel Daarna Hoe "
         "Daarvoor Binnen Terwijl Bovendien Toch Vandaag Kort Wie Haar Nu Zeker Al Zoals Meestal Waarom Wat Waar Je Jullie U Ja "
         "Nee Alle Geen"},
    {.language = "sv",
     .never_last =
         "dr. prof. hr. fr. frk. kapt. gen. st. S:t. sr. t.ex. bl.a. s.k. dvs. d.v.s. jfr. resp. inkl. exkl. ev. fr.o.m. t.o.m. "
         "p.g.a. m.a.o. eg. ung. ca. c:a. vs. bl. Mr. Mrs.",
     .seldom_last = "d.y. d.ä. jr. tel. Inc. Ltd. Co.",
     .before_number = "nr. s. kap. fig. tab. art. vol. kl. sid. bil. p. pp. avsn. mom.",
     .closing = "osv. o.s.v. m.m. m.fl. etc. e.d. o.d. f.Kr. e.Kr.",
     .measures = "mkr. milj. mdr.",
     .starters =
         "Det Men De I Den Vi När En Jag För Man Och Har Att Vad Är Detta Så Då Med Om Allt Hur Dom Ett På Han Hon Inte Inom "
         "Många Till Därför Samtidigt Även Först Vid Kan Mest Också Varför Mycket Ännu Nu Fast Själv Ja Nej Ur Du Ni Vem Var "
         "Efter Från Under Av Alla Denna Dessa Sedan Här Där Eller Som Enligt",
     .goes_on_after_mark = true},
    {.language = "da",
     .never_last =
         "dr. prof. hr. fr. frk. kaptajn. gen. skt. sct. St. f.eks. fx. bl.a. bl. d.v.s. dvs. jf. jvf. ca. inkl. ekskl. evt. "
         "pga. p.g.a. vedr. pr. iflg. hhv. ang. fhv. afd. adm. dir. cand. stud. lic. mag. a.k.a. s.k. o.a. vs. Mr. Mrs. tlf. "
         "forf.",
     .seldom_last = "d.y. d.æ. jr. Inc. Ltd. Co. phil. jur. ApS.",
     .before_number = "nr. s. kap. fig. tab. art. vol. kl. stk. p. pp. bd. st. tv. th.",
     .closing = "osv. o.s.v. m.m. m.v. mv. m.fl. etc. o.l. f.Kr. e.Kr.",
     .measures = "mio. mill. mia. kr. pct.",
     .starters =
         "Det Men Jeg De I Han Og En Den Vi Hun Et På Med Nu Så For Der Her Hvor Er Hvad Ikke Da Man Ja Nej Når Begge Alle Hans "
         "To At Til Hvis Du Samtidig Omkring Som Eller Sammen Efter Ingen Kan Nogle Hvem Hvorfor Hvordan Derfor Dette Denne "
         "Disse Også Under Fra Ved Mange Siden Hvornår Har Skal Vil",
     .ordinals_with_stop = true,
     .roman_ordinals_with_stop = true,
     .goes_on_after_mark = true},
    {.language = "nb",
     .never_last =
         "dr. prof. hr. fr. frk. kapt. gen. St. f.eks. bl.a. dvs. jf. jfr. ca. inkl. ekskl. evt. pga. vedr. pr. iht. ift. ang. "
         "adm. dir. s.k. a.k.a. bl. avd. tlf. mht. vs. Mr. Mrs.",
     .seldom_last = "d.y. d.e. jr. Inc. Ltd. Co.",
     .before_number = "nr. s. kap. fig. tab. art. vol. kl. str. p. pp. bd. par.",
     .closing = "osv. m.m. m.v. mv. m.fl. etc. o.l. f.Kr. e.Kr.",
     .measures = "mill. mrd. kr. pst.",
     .starters =
         "Det Jeg Men I Og Vi Han De For En På Den Da Hun Så Dette Du Hva Et Som Er Etter Når Her Nå Nei Selv Med At Alle "
         "Hvordan Til Ikke Der Ifølge Å Derfor Slik Eller Om Fra Samtidig Mange Hvis Kanskje Man Både Ved Skal Av Noen Enda Uten "
         "Alt Også Akkurat Gjennom Ingen Har Flere Tre To Denne Bare Hvorfor Mens Under Hvem Hvor Ja Disse",
     .roman_ordinals_with_stop = true,
     .goes_on_after_mark = true},
    {.language = "fr",
     .never_last =
         "M. MM. Mme. Mmes. Mlle. Mr. Mrs. Dr. Drs. Pr. Prof. Me. Mgr. St. Ste. Cie. Gén. Col. Cap. Lt. Sgt. cf. p.ex. c.-à-d. "
         "c-à-d. i.e. env. vs. ex. N.-D. S.M. S.E. av. apr. ap. boul. bd. éd. dir. resp. dép. tél. Tél.",
     .seldom_last = "al. Inc. Ltd. Corp. Bros. Jr. Sr. S.A. chap. coll. janv. févr. avr. juil. oct. déc. ibid. id. sq. sqq. suiv.",
     .before_number = "art. n. no. p. pp. fig. vol. t. tab. réf. sect. §. num. nov. sept. r. lot.",
     .closing = "etc. J.-C.",
     .measures = "hab.",
     .starters =
         "Le Il Les La L' En Je Dans Pour Une Ce Nous Elle Elles Cette C'est Un Si Au Des Mais De Ces Ils Selon Après À A On Son "
         "Sur J'ai Chez Cependant Par Cela Et Depuis Comme Voir Vous Cet Quant Comment Puis Ceci Plus Ainsi Avant Tout Tous "
         "Pourquoi Aucun Bien Votre Trois Du Environ Quel Avec Aux Ses Toutefois Celle Sa Leur Qui Que Où Quand Deux Ne Non Oui "
         "Tu Notre Ma Mon Était Est",
     .not_abbreviations = "mer. jeu. mar. ven. sam. dim. lun. trav. imm. niv. syst. All. Var. Op. Desc. doc."},
    {.language = "es",
     .never_last =
         "Sr. Sra. Srta. Sres. Sras. Dr. Dra. Dres. D. Dª. Dña. Prof. Profa. Ing. Lic. Arq. Gral. Gen. Cnel. Cap. Cmdte. Tte. "
         "Sgto. Mons. Fr. Rev. St. Sta. Sto. Ud. Uds. Vd. Vds. Mr. Mrs. Ms. p.ej. ej. vs. cf. cfr. aprox. Av. Avda. Excmo. "
         "Excma. Ilmo. Ilma. ntra. tel. tfno. Dpto. Depto. v.",
     .seldom_last = "S.A. EE.UU. JJ.OO. Cía. Inc. Ltd. Ltda. Corp. Bros. Jr. Hnos. al.",
     .before_number = "n. núm. núms. nro. art. arts. p. pp. pág. págs. fig. figs. vol. cap. ed. t. tomo. no. pto. c.",
     .closing = "etc. a.C. d.C.",
     .measures = "hab.",
     .starters =
         "El La En Se Los Fue Por Su Las Sin De Es Este A Según También Durante Con Esta Como Además Un No Si Cuando Esto Tiene "
         "Una Está Lo Mientras Desde Al Y Después Uno Pero Sus Así Aunque Más Para Estos Ese Entre Dos Algunos Ella Él Ellos "
         "Finalmente Me Todos Ambos Varios Entonces Éste Junto Fueron Aquí Muchas Debido Tanto Muy Cada Les Allí Solo Sólo Hay "
         "Ha Qué Quién Dónde Cuándo Yo Tú Nosotros Eso Luego Hoy Ayer Ahora Estas Esa Ya Le Nos Te Mi",
     .not_abbreviations =
         "Sol. Bien. Kit. Rol. RAM. Korn. may. Var. Seg. All. Da. SA. CA. Ant. Exc. K. L. vie. mar. mié. jue. Id."},
    {.language = "pt",
     .never_last =
         "Sr. Sra. Srs. Sras. Srta. Dr. Dra. Drs. Dras. Prof. Profa. Profs. Eng. Engª. Arq. Gal. Gen. Cel. Cap. Maj. Ten. Sgt. "
         "Alm. Mons. Pe. Fr. D. St. Sta. Sto. S. Exmo. Exma. Ilmo. Ilma. Mr. Mrs. Ms. V. p.ex. vs. cf. Av. tel. Tel. tels. R.",
     .seldom_last = "S.A. Ltda. Cia. Inc. Ltd. Corp. Bros. Jr. al. E.U.A. EE.UU. ex.",
     .before_number = "n. nº. núm. art. arts. p. pp. pág. págs. fig. figs. vol. cap. ed. t. no. séc. inc. c. lote.",
     .closing = "etc. a.C. d.C.",
     .measures = "hab.",
     .starters =
         "O A Os As Em Na No Nas Nos É Para E Ele Ela Eles Elas Com Segundo Mas Um Uma De Não Apesar Depois Já Se Foi Além Ao "
         "Entre Como Há Por Quando Do Da Dos Das Eu Até Também Esta Este Estes Ainda Mais Foram Durante Antes Neste Assim Hoje "
         "Esses Quem Caso Estamos Só Tudo Após Desde Nós Pelo Pela Sem Tenho Agora Esse Essa Isso Isto Era Embora Mesmo À Cada "
         "Que Qual Onde Porque Você Seu Sua Meu Minha Muito Muitos Outro Outra Ou Ontem Lá Aqui Nem Sobre",
     .not_abbreviations =
         "res. mar. out. set. sup. pal. des. cont. fil. lit. cel. alt. ind. port. l. E. R. mai. end. rementente comp. esp. med. "
         "rod. mat. lat. leit. mov. fac. rel. pol. pron. hist. ref. desc. tec. div. f. abr."},
    {.language = "it",
     .never_last =
         "sig. sigg. sig.ra. sig.na. dott. dott.ssa. dr. prof. prof.ssa. proff. ing. avv. arch. geom. rag. on. mons. gen. col. "
         "cap. magg. ten. S. Ss. St. cav. comm. p.es. es. cfr. cf. vs. ecc.mo. Mr. Mrs. Ms. spett. egr. gent. tel. ca. v. sen. "
         "card. dist.",
     .seldom_last = "S.p.A. S.r.l. Inc. Ltd. Corp. Bros. jr. al. N.B. c.d.",
     .before_number = "art. artt. n. nn. num. p. pp. pag. pagg. fig. figg. vol. voll. capp. tab. ed. sez. c. co. l. L. t. par.",
     .closing = "ecc. etc. a.C. d.C.",
     .starters =
         "Il La Lo Gli L' In I Le Per E Nel Nella A Qualora Chi È Si Ai Quando Sono Non Quanto Con Ma Da Dal Quale Che Come "
         "Possono Una Un Uno Nei Anche Alla Ove Se Di Tale Questa Questo Poi Al Dopo Quanti Quindi Ogni Ovviamente Essi Tutti "
         "Allora Perché Ora Era Questi Del Della Dei Fino Fra Tra Qual Dove Secondo Solo Fanno Io Tu Lui Lei Noi Voi Loro Ha "
         "Hanno Cosa Oggi Ieri Sulla Sul Ci Mi Ti Nessuno Così Infatti Inoltre Tuttavia",
     .not_abbreviations = "ver. all. int. Mod. Liv. L. tab. mitt."},
    {.language = "ca",
     .never_last =
         "Sr. Sra. Srs. Sres. Dr. Dra. Prof. St. Sta. Mn. Gral. Excm. Il·lm. p.ex. ex. vs. cf. Av. Avda. tel. Mr. Mrs. pl. c. "
         "aprox.",
     .seldom_last = "S.A. S.L. hab. Inc. Ltd. Jr. EUA. EE.UU.",
     .before_number = "núm. art. arts. p. pp. pàg. pàgs. fig. vol. cap. ed. n.",
     .closing = "etc. a.C. d.C.",
     .starters =
         "El La L' Els Les En Es Per A Al Un Una De Del Però I Si No Com Quan També Segons Amb És Aquest Aquesta Aquests Això "
         "Després Durant Des Entre Més Ha Han Fins Tot Així Jo Tu Nosaltres Ell Ella Què Qui On Hi Avui Ahir Ara"},
    {.language = "ro",
     .never_last =
         "dl. d-l. dna. d-na. dlui. dnei. dr. prof. ing. av. acad. conf. gen. col. cpt. lt. Sf. Sfântul. str. bd. bl. sc. ap. "
         "jud. com. mun. tel. vs. cf. aprox. ș.a. Mr. Mrs. St. Al. nr.",
     .seldom_last = "S.A. S.R.L. S.U.A. Inc. Ltd. Corp. jr.",
     .before_number = "art. alin. lit. p. pp. pag. fig. vol. cap. ed. tab. sec.",
     .closing = "etc. ș.a.m.d. î.Hr. d.Hr.",
     .measures = "pct. mil. mld.",
     .starters =
         "În De Se Nu Un O Pentru La Din Cu Dacă Pe Era Când Este Și Dar Prin El Ea Ei Ele A Aceste Această Acest Mai Sunt Cel "
         "Astfel După Aceasta S Totuși Iar Până Am I Avea Unul Uneori Cei Încă Așa Ca Între Deși Să Eu Ne Au Odată Una Mă Te Tu "
         "Noi Voi Ce Cine Unde Cum Azi Ieri Acum Da Toate Toți Fără Conform Însă Al"},
    {.language = "id",
     .never_last =
         "Dr. dr. Drs. Dra. Prof. Ir. H. Hj. Tn. Ny. Sdr. Bpk. Rev. Jend. Kol. Kapt. St. Mr. Mrs. Jl. jl. Kab. Kec. a.n. d.h. "
         "a.l. vs. Gg.",
     .seldom_last = "Inc. Ltd. Tbk. Jr. Co. Corp. M.Si. S.H. S.E. S.Pd.",
     .before_number = "No. no. hlm. hal. ps. tel. telp. Tel. Telp. vol. Vol. pukul. Kav.",
     .closing = "dll. dsb. dst. etc.",
     .starters =
         "Pada Di Ia Setelah Apakah Untuk Dalam Hal Bagaimana Namun Dia Ini Itu Kemudian Apa Lalu Saat Meskipun Mereka Selain "
         "Para Walaupun Dari Meski Sebagai Ketika Sejak Yang Beberapa Sebuah Akan Setiap Dengan Mengapa Bila Banyak Sampai Jika "
         "Karena Kami Kita Saya Aku Tetapi Tapi Siapa Ada Tidak Sekarang Hari Ke Oleh Semua"},
    {.language = "vi",
     .never_last = "TS. ThS. PGS. GS. BS. KS. TP. Tp. tp. Q. P. Mr. Mrs. Dr. St. LS.",
     .seldom_last = "Inc. Ltd.",
     .before_number = "tr. số. Tel. ĐT."},
};
// clang-format on

}  // namespace

std::span<const AbbreviationLists> WesternAbbreviations() { return kWesternLists; }

}  // namespace linnet::model
